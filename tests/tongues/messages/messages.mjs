// As messages.c. LOOM_PACKAGE is the address of the package's module for Node.js.
import { createInterface } from "node:readline";

const { init } = await import(process.env.LOOM_PACKAGE);
const loom = await init({ threads: 1 });
let path = "", model = null;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const [file, flags, messages, tools, variables] = line.split("\t");
  if (file !== path) {
    model?.close();
    path = file;
    model = await loom.load(file);
  }
  const options = { noReply: flags.includes("n"), continueFinalMessage: flags.includes("c") };
  if (tools !== "") options.tools = JSON.parse(tools);
  if (variables !== "") options.variables = JSON.parse(variables);
  try {
    const text = await model.renderChat(JSON.parse(messages), options);
    console.log(`ok ${Buffer.from(text).toString("hex")}`);
  } catch (error) {
    console.log(`error ${error.message}`);
  }
}
loom.close();
