// Package nightscout connects people's own Nightscout servers: open-source software that
// keeps what a glucose monitor and a pump report, and that people run for themselves.
//
// A person signs in with the address of the site and a token of it, or its API secret; so
// the provider's record has auth_type password ([Record]). A token that may only read is
// enough, and better: the secret may do everything, and cannot be taken back from us alone.
//
//	connectors["nightscout"] = nightscout.New(nil).Flows()
//
// # What is read
//
// It speaks version 1 of the API, which every Nightscout has:
//
//	glucose              entries of type sgv (a sensor's, in mg/dL, but for its codes of errors)
//	                     and mbg (a finger's); treatments with a glucose of the finger
//	insulin_injection    treatments with insulin
//	carbohydrates        treatments with carbs
//	note                 treatments with notes
//
// A glucose of a treatment is in the unit that it names, else in the one that the site
// showed when the person signed in; if neither is known, it is reported as unparsed.
//
// Rates of basal insulin are not read: a rate says what was set, not what was given. Nor
// are the status of devices and predictions.
//
// # Time
//
// Instants are Unix milliseconds or ISO 8601. An offset of zero means nothing, because
// uploaders that send UTC leave it behind; then the zone of the site's profile holds, as it
// was when the person signed in, and without one the user's fallback zone.
//
// # Devices
//
// The device of a glucose is what its document names as device, and that of an injection the
// pump with its serial number. A device that only has a model is known by it.
//
// # Once
//
// A sample is known by its instant, so what comes twice is stored once. Treatments are told
// apart by identifier, else by _id; of one that comes twice the last is taken, and the
// amounts of different ones at one instant are added.
//
// The address is a stranger's: it has to pass a webhook.Guard when the person types it and
// every time that it is dialled.
package nightscout
