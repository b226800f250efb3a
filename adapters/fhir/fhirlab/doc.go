// Package fhirlab connects a laboratory that speaks FHIR R4: orders go out as transactions, and results come in
// as bundles (transaction, batch, message, collection) or as a DiagnosticReport by REST, which the laboratory sends or
// [Backend.Poll] reads from its server.
//
// [Backend] is an exchange.LabBackend:
//
//	lab := fhirlab.New(fhirlab.NewClient("https://lab.example.com/fhir", token, nil), store.LabJournal(), &fhirlab.Options{LabSlug: "northlab"})
//	labs, err := exchange.New(service, orders, reviews, lab, nil)
//	mux.Handle("/from-northlab/", http.StripPrefix("/from-northlab", lab.Handler(authorize)))
//
// Names to know:
//
//   - [Options] says how one laboratory speaks: systems of numbers and codes.
//   - The journal (orders/labjournal) stores orders and bundles, encrypted with the keys of the patients. A
//     bundle is acknowledged after it was stored.
//   - [Read] turns what a laboratory sends into plain values, without storing anything.
//   - [Options].ReviewTeam: results that name no order go to the review queue of the exchange.Service. Without
//     it, [Backend.Review] lists them. Results that name an order always go to the orders.Service, with what was
//     reported of patient and numbers: it decides whose they are.
//
// A bundle is taken as a whole or refused as a whole. Refused is what cannot be read without loss: results
// that are not in the bundle, values of a type that has no text, deletions.
package fhirlab

// Files in the order of reading: each uses those before it.
//
//	client.go journal.go options.go order.go backend.go wire.go read.go state.go receive.go poll.go
//	observation.go
