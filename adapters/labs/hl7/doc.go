// Package hl7 connects a laboratory that speaks HL7 v2: orders are sent as OML^O21 (or ORM^O01), results arrive as
// ORU^R01.
//
// [Backend] is an exchange.LabBackend. It sends through a [Sender], most often an mllp.Client, and it is the
// mllp.Handler for the messages of the laboratory:
//
//	lab := hl7.New(mllp.NewClient("lab.example.com:2575", nil), store.LabJournal(), &hl7.Options{
//		Us: hl7.Party{Application: "ORDERS", Facility: "CLINIC"}, Lab: hl7.Party{Application: "LIS", Facility: "NORTHLAB"},
//	})
//	labs, err := exchange.New(service, orders, reviews, lab, nil)
//	go mllp.NewServer(lab, nil).Serve(ctx, listener)
//
// Names to know:
//
//   - [Options] describes one laboratory: names, codes, zone, version.
//   - The journal (orders/labjournal) stores orders and messages, encrypted with the keys of the patients; a
//     message is acknowledged after it was stored. The stores of adapters/memory and adapters/postgres have one.
//   - [Read] parses a result message into plain values, without storing anything.
//   - [Options].ReviewTeam: results that name no order go to the review queue of the orders.Service. Without it,
//     [Backend.Review] lists them, and [Backend.Attach] assigns one to an order. Results that name an order always
//     go to the orders.Service, with the reported patient and numbers, and it decides to whom they belong.
//   - [Folder] exchanges messages as files.
//
// A laboratory may send only new results or all results so far, repeat messages, and send them in any order. The
// package does not store documents (see [Documents]) and is not an integration engine.
package hl7

// Files in the order of reading: each uses those before it.
//
//	coded.go specimen.go journal.go options.go ack.go folder.go report.go embedded_document.go order.go
//	backend.go interpretation.go message.go review.go observation.go version.go identity.go state.go
//	missing.go order_results.go assign.go receive.go
