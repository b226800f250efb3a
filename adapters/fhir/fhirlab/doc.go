// Package fhirlab connects a laboratory that speaks FHIR R4. Orders are sent as transactions. Results arrive as
// bundles (transaction, batch, message, collection) or as a DiagnosticReport by REST. The laboratory sends them, or
// [Backend.Poll] reads them from its server.
//
// [Backend] is an exchange.LabBackend:
//
//	lab := fhirlab.New(fhirlab.NewClient("https://lab.example.com/fhir", token, nil), store.LabJournal(),
//		&fhirlab.Options{LabSlug: "northlab"})
//	labs, err := exchange.New(service, orders, reviews, lab, nil)
//	mux.Handle("/from-northlab/", http.StripPrefix("/from-northlab", lab.Handler(authorize)))
//
// Names to know:
//
//   - [Options] describes one laboratory: its systems of numbers and codes.
//   - The journal (orders/labjournal) stores orders and bundles, encrypted with the keys of the patients. A
//     bundle is acknowledged after it was stored.
//   - [Read] parses what a laboratory sends into plain values, without storing anything.
//   - [Options].ReviewTeam: results that name no order go to the review queue of the exchange.Service. Without
//     it, [Backend.Review] lists them. Results that name an order always go to the orders.Service, with the
//     reported patient and numbers, and it decides to whom they belong.
//
// A bundle is accepted or refused as a whole. It is refused if it cannot be read without loss: if it names results
// that it does not contain, has values of a type without text, or contains deletions.
package fhirlab

// Files in the order of reading: each uses those before it.
//
//	client.go journal.go options.go order.go backend.go wire.go read.go state.go receive.go poll.go
//	observation.go
