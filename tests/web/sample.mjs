// Selects the cases that a check of a change runs. A sample is "whole" if the change affects what
// the cases test. Otherwise it is a seed from the hash of the repository, so the same state runs
// the same cases. It has no imports, so that pages can use it.

// A number of 32 bits from a text: FNV-1a, then the finalizer of MurmurHash3, so that low bits are mixed too.
function draw(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35);
  return (hash ^ hash >>> 16) >>> 0;
}

// A tenth of the names, at least one. `salt` separates samples of one seed.
export function tenth(names, salt, sample) {
  if (sample === "whole") return names;
  const some = names.filter((name) => draw(`${sample}/${salt}/${name}`) % 10 === 0);
  return some.length > 0 ? some : [names[draw(`${sample}/${salt}`) % names.length]];
}

// The names that one variant runs, so that every name is run by one of them. All variants run the first name.
export function shareOf(names, variants, variant, salt, sample) {
  if (sample === "whole") return names;
  return names.filter((name, i) => i === 0 || variants[draw(`${sample}/${salt}/${name}`) % variants.length] === variant);
}
