//! Prints what a network, its training and a story come to, as tests/capi/bits.c does.

use loom_engine::{
    Dataset, FitOptions, GenerateOptions, Model, Network, Result, Tensor, Trainer, TrainerOptions,
};

const JSON: &str = r#"{"loom": 1, "grid": [1,1,2,1], "input": [4], "cells": [
    {"at":[0,0,0,0],"type":"Dense","in":4,"out":16,"activation":"tanh"},
    {"at":[0,0,1,0],"type":"Dense","in":16,"out":3}]}"#;

fn points() -> (Vec<f32>, Vec<i32>) {
    let (mut state, mut x, mut y) = (88172645463325252u64, Vec::new(), Vec::new());
    for _ in 0..240 {
        let row: Vec<f32> = (0..4)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect();
        y.push(if row[0] + row[1] > 0.3 {
            0
        } else if row[2] - row[3] > 0.0 {
            1
        } else {
            2
        });
        x.extend(row);
    }
    (x, y)
}

fn print_outputs(net: &Network, x: &Tensor<'_>) -> Result<()> {
    let outputs = net.predict(x)?;
    let hex: String = outputs
        .as_slice::<f32>()?
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("outputs {hex}");
    Ok(())
}

fn main() -> Result<()> {
    let (x, y) = points();
    let x = Tensor::new(&x, &[240, 4])?;
    let y = Tensor::new(&y, &[240])?;
    let mut net = Network::from_json(JSON, Some(7))?;
    print_outputs(&net, &x)?;
    let data = Dataset::new(&x, Some(&y))?;
    let mut trainer = Trainer::new(&mut net, &TrainerOptions { rate: 1e-2, ..Default::default() })?;
    trainer.fit(&data, None, FitOptions { epochs: 3, ..Default::default() })?;
    println!("trained {}", trainer.weights_hash()?);
    drop(trainer);
    print_outputs(&net, &x)?;
    let path = std::env::var("LOOM_TEST_MODEL").unwrap_or("models/stories.entity".into());
    let mut story = String::new();
    let options =
        GenerateOptions { max_tokens: 60, temperature: 0.8, seed: 7, ..Default::default() };
    Model::load(path)?.stream("Once upon a time", &options, |token| {
        story += &token.text;
        true
    })?;
    println!("story {story}");
    Ok(())
}
