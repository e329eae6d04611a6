// As messages.c.
use loom_engine::{Conversation, Model};
use std::io::{BufRead, Write};

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn main() {
    let mut loaded: Option<(String, Model)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let fields: Vec<&str> = line.split('\t').collect();
        if loaded.as_ref().map_or(true, |(path, _)| path != fields[0]) {
            loaded = Some((fields[0].to_owned(), Model::load(fields[0]).unwrap()));
        }
        let conversation = Conversation {
            no_reply: fields[1].contains('n'),
            continue_final_message: fields[1].contains('c'),
            tools: some(fields[3]),
            variables: some(fields[4]),
            ..Conversation::from(fields[2])
        };
        match loaded.as_ref().unwrap().1.render_chat(conversation) {
            Ok(text) => {
                let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
                println!("ok {hex}");
            }
            Err(error) => println!("error {error}"),
        }
        std::io::stdout().flush().unwrap();
    }
}
