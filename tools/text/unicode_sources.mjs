// Writes the parts of the Unicode database for make_unicode_tables.py as JSON, from the npm
// packages @unicode/unicode-VERSION and unicode-property-value-aliases of the given folder.
import { readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const root = process.argv[2];
const load = async (path) => (await import(pathToFileURL(`${root}/node_modules/${path}`))).default;
const of = (version) => `@unicode/unicode-${version}`;
const points = (version, path) => load(`${of(version)}/${path}/code-points.mjs`);

// Sorted pairs [first, last].
function ranges(list) {
  const out = [];
  for (const c of [...list].sort((a, b) => a - b)) {
    if (out.length > 0 && out.at(-1)[1] === c - 1) out.at(-1)[1] = c;
    else out.push([c, c]);
  }
  return out;
}

async function folder(version, kind, names) {
  const out = {};
  for (const name of names ?? readdirSync(`${root}/node_modules/${of(version)}/${kind}`)) {
    out[name] = ranges(await points(version, `${kind}/${name}`));
  }
  return out;
}

async function maps(version, paths) {
  const out = [];
  for (const path of paths) {
    for (const [from, to] of await points(version, path)) out.push([from, to]);
  }
  return out.sort((a, b) => a[0] - b[0]);
}

const short = 'Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn';
const aliases = await load('unicode-property-value-aliases/index.mjs');
const long = aliases.get('General_Category');
const categories = async (version, wanted) => {
  const out = {};
  for (const name of wanted) {
    out[name] = ranges(await points(version, `General_Category/${long.get(name)}`));
  }
  return out;
};
const binary = ['Alphabetic', 'Lowercase', 'Uppercase', 'Ideographic', 'Emoji', 'White_Space'];
const result = {
  categories: await categories('16.0.0', short.split(' ')),
  scripts: await folder('16.0.0', 'Script'),
  script_aliases: Object.fromEntries(aliases.get('Script')),
  binary: await folder('16.0.0', 'Binary_Property', binary),
  folds: await maps('16.0.0', ['Case_Folding/C', 'Case_Folding/S']),
  lower: await maps('17.0.0', ['Simple_Case_Mapping/Lowercase']),
  upper: await maps('17.0.0', ['Simple_Case_Mapping/Uppercase']),
  numbers: await categories('17.0.0', ['Nd', 'Nl', 'No']),
  punctuation: await categories('8.0.0', ['Pc', 'Pd', 'Ps', 'Pe', 'Pi', 'Pf', 'Po']),
  others: await categories('8.0.0', ['Cc', 'Cf', 'Co']),
  marks: (await categories('8.0.0', ['Mn'])).Mn,
  breaks: await folder('17.0.0', 'Grapheme_Cluster_Break'),
  conjuncts: await folder('17.0.0', 'Indic_Conjunct_Break'),
  pictographic: ranges(await points('17.0.0', 'Binary_Property/Extended_Pictographic')),
  unassigned: (await categories('9.0.0', ['Cn'])).Cn,
};
process.stdout.write(JSON.stringify(result));
