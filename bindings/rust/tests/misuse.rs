//! Wrong use is an error with a code, and a panic of a closure stays in Rust.

use loom_engine::{
    Conversation, sys, Code, DType, Dataset, Engine, EngineOptions, Error, FitOptions, GenerateOptions, Model,
    Network, SessionOptions, Tensor, Trainer, TrainerOptions, Turn,
};
use std::panic::{catch_unwind, AssertUnwindSafe};

const JSON: &str = r#"{"loom": 1, "grid": [1,1,1,1], "input": [4], "cells": [
    {"at":[0,0,0,0],"type":"Dense","in":4,"out":3}]}"#;

fn net() -> Network {
    Network::from_json(JSON, Some(1)).unwrap()
}

fn stories() -> Model {
    Model::load(std::env::var("LOOM_TEST_MODEL").expect("LOOM_TEST_MODEL names a model")).unwrap()
}

fn fails<T>(given: Result<T, Error>, code: Code, words: &str) {
    let Err(error) = given else { panic!("it did not fail: {words}") };
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(words), "{error}");
}

#[test]
fn null_and_freed_handles_are_errors_by_code() {
    let mut out = std::ptr::null_mut();
    let status = unsafe { sys::loom_network_predict(std::ptr::null(), std::ptr::null(), &mut out) };
    assert_eq!(status, sys::LOOM_INVALID_ARGUMENT);
    unsafe {
        let mut raw = std::ptr::null_mut();
        assert_eq!(sys::loom_engine_shared(&mut raw), sys::LOOM_OK);
        sys::loom_engine_free(raw);
        let mut info = sys::loom_engine_info::default();
        assert_eq!(sys::loom_engine_get_info(raw, &mut info), sys::LOOM_INVALID_ARGUMENT);
    }
}

#[test]
fn wrong_shapes_types_and_texts_are_errors_by_code() {
    let numbers = [0f32; 5];
    fails(Tensor::new(&numbers, &[2, 3]), Code::InvalidArgument, "[2, 3]");
    fails(Tensor::new(&numbers, &[-1, -5]), Code::InvalidArgument, "fill");
    let net = net();
    fails(net.predict(&Tensor::new(&numbers, &[1, 5]).unwrap()), Code::InvalidArgument, "[1, 5]");
    let mut session = net.session(&SessionOptions::default()).unwrap();
    let x = Tensor::new(&numbers[..4], &[1, 4]).unwrap();
    fails(session.run_into(&x, &mut [0.0; 2], &[1, 2]), Code::InvalidArgument, "[1, 2]");
    let mut place = [7f32; 3];
    session.run_into(&x, &mut place, &[1, 3]).unwrap();
    assert_eq!(place, net.predict(&x).unwrap().as_slice::<f32>().unwrap());
    fails(net.predict(&x).unwrap().as_slice::<i64>(), Code::InvalidArgument, "Float32");
    assert_eq!(
        net.predict(&x).unwrap().convert(DType::Float64).unwrap().dtype(),
        Some(DType::Float64)
    );
    fails(net.parameter("no\0thing"), Code::InvalidArgument, "NUL");
    fails(net.parameter("nothing"), Code::NotFound, "nothing");
    fails(Network::load("/nowhere/net.entity"), Code::NotFound, "/nowhere");
    fails(Network::load_bytes(b"no file"), Code::BadFile, "");
    fails(Network::from_json("{\"loom\": 1", None), Code::BadFile, "");
    let wrong = EngineOptions { isa: Some("abacus".into()), ..Default::default() };
    fails(Engine::new(&wrong), Code::Unsupported, "abacus");
}

#[test]
fn networks_are_saved_loaded_and_trained_by_steps() {
    let mut net = net();
    let values: Vec<f32> = (0..32).map(|i| (i % 7) as f32 / 7.0).collect();
    let x = Tensor::new(&values, &[8, 4]).unwrap();
    let y = Tensor::new(&[0i32, 1, 2, 0, 1, 2, 0, 1], &[8]).unwrap();
    let data = Dataset::new(&x, Some(&y)).unwrap();
    assert_eq!((data.samples().unwrap(), data.x().unwrap().shape()), (8, vec![8, 4]));
    let mut trainer = Trainer::new(&mut net, &TrainerOptions::default()).unwrap();
    fails(trainer.weights_hash(), Code::InvalidArgument, "nothing was trained");
    assert!(trainer.step(&x, &y).unwrap().updated);
    let before = trainer.weights_hash().unwrap();
    assert!(trainer.step(&x, &y).unwrap().loss > 0.0);
    assert_ne!(trainer.weights_hash().unwrap(), before);
    assert!(trainer.evaluate(&data).unwrap().accuracy.is_some());
    fails(trainer.step(&x, &Tensor::new(&[9i32; 8], &[8]).unwrap()), Code::InvalidArgument, "10 classes");
    let seen = trainer.network().predict(&x).unwrap();
    let file = std::env::temp_dir().join(format!("loom_rust_{}.entity", std::process::id()));
    trainer.network().save(&file).unwrap();
    let loaded = Network::load(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let again = loaded.predict(&x).unwrap();
    assert_eq!(again.as_slice::<f32>().unwrap(), seen.as_slice::<f32>().unwrap());
}

/// The hash of a new network after two steps with these options.
fn hash_with(options: &TrainerOptions) -> Result<String, Error> {
    let mut net = net();
    let values: Vec<f32> = (0..32).map(|i| (i % 7) as f32 / 7.0).collect();
    let x = Tensor::new(&values, &[8, 4])?;
    let y = Tensor::new(&[0i32, 1, 2, 0, 1, 2, 0, 1], &[8])?;
    let data = Dataset::new(&x, Some(&y))?;
    let mut trainer = Trainer::new(&mut net, options)?;
    trainer.fit(&data, None, FitOptions { epochs: 2, ..Default::default() })?;
    trainer.weights_hash()
}

#[test]
fn options_by_name_change_what_is_learned_or_are_refused() {
    let plain = hash_with(&TrainerOptions::default()).unwrap();
    let others = [
        TrainerOptions { freeze: vec!["*/bias".into()], ..Default::default() },
        TrainerOptions { rate_for: vec![("*/bias".into(), 0.5)], ..Default::default() },
        TrainerOptions { class_weights: vec![1.0, 2.0, 3.5], ..Default::default() },
        TrainerOptions { beta1: Some(0.0), ..Default::default() },
    ];
    for options in &others {
        assert_ne!(hash_with(options).unwrap(), plain, "{options:?}");
    }
    let nothing = TrainerOptions { freeze: vec!["a \"b\" \\".into()], ..Default::default() };
    fails(hash_with(&nothing), Code::InvalidArgument, "a \"b\" \\");
    let above = TrainerOptions { label_smoothing: 2.0, ..Default::default() };
    fails(hash_with(&above), Code::InvalidArgument, "label_smoothing is 2, must be 0 to 1");
}

#[test]
fn a_closure_stops_a_fit_and_its_panic_stays_in_rust() {
    let mut net = net();
    let x = Tensor::new(&[0.5f32; 16], &[4, 4]).unwrap();
    let y = Tensor::new(&[0i32, 1, 2, 0], &[4]).unwrap();
    let data = Dataset::new(&x, Some(&y)).unwrap();
    let mut trainer = Trainer::new(&mut net, &TrainerOptions::default()).unwrap();
    let mut epochs = 0;
    let stop = FitOptions {
        epochs: 5,
        on_epoch: Some(Box::new(|_| {
            epochs += 1;
            epochs < 2
        })),
        ..Default::default()
    };
    fails(trainer.fit(&data, None, stop), Code::Cancelled, "");
    assert_eq!(epochs, 2);
    let panics =
        FitOptions { on_batch: Some(Box::new(|_, _, _| panic!("mine"))), ..Default::default() };
    let caught = catch_unwind(AssertUnwindSafe(|| trainer.fit(&data, None, panics)));
    assert_eq!(*caught.err().unwrap().downcast_ref::<&str>().unwrap(), "mine");
    assert_eq!(
        trainer.fit(&data, None, FitOptions { epochs: 2, ..Default::default() }).unwrap().len(),
        2
    );
}

#[test]
fn a_model_streams_chats_and_a_panic_leaves_it_whole() {
    let model = stories();
    let options = GenerateOptions { max_tokens: 8, ..Default::default() };
    let whole = model.generate("One day", &options).unwrap();
    let caught =
        catch_unwind(AssertUnwindSafe(|| model.stream("One day", &options, |_| panic!("mine"))));
    assert!(caught.is_err());
    let mut seen = String::new();
    let stopped = model.stream("One day", &options, |token| {
        seen += &token.text;
        seen.len() < 8
    });
    assert_eq!(stopped.unwrap().stop, Some(loom_engine::Stop::Cancelled));
    assert!(whole.text.starts_with(&seen));
    let ids = model.tokenize("One day").unwrap();
    assert_eq!(model.detokenize(&ids).unwrap().trim(), "One day");
    let mut session = model.session(64).unwrap();
    session.feed(&ids).unwrap();
    assert_eq!(session.logits().unwrap().len() as i64, model.info().unwrap().vocab);
    fails(session.feed(&[1 << 30]), Code::OutOfRange, "");
    fails(session.rewind(99), Code::OutOfRange, "99");
    fails(session.generate("a\0b", &options), Code::InvalidArgument, "NUL");
    let turns = [Turn { role: "user", content: "Hello" }];
    assert!(model.render_chat(&turns).unwrap().contains("Hello"));
    assert!(model.chat(&turns, &options).unwrap().token_ids.len() <= 8);
    let parts = r#"[{"role": "user", "content": [{"type": "text", "text": 5}]}]"#;
    let why = "messages[0].content[0].text must be a text; got 5";
    fails(model.render_chat(parts), Code::InvalidArgument, why);
    let continued = [turns[0], Turn { role: "assistant", content: "\"Once\"" }];
    let continued =
        Conversation { continue_final_message: true, ..Conversation::from(&continued) };
    let text = model.render_chat(&continued).unwrap();
    assert!(text.ends_with("\"Once\""));
    let reply = model.read_reply("Hi", &text, None).unwrap();
    assert_eq!(reply, r#"{"role":"assistant","content":"Hi"}"#);
}
