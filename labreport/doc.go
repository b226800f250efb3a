// Package labreport turns a lab report that exists already, a PDF, a scan, a photo,
// into structured results matched to LOINC codes, and points at the place on the page
// where it read each field.
//
// It orders nothing and has nothing to do with the results of orders: those come
// from a laboratory as data, these from paper.
//
// The names to know:
//
//   - [Reader] is the pure part: pages of words with boxes in, [Data] out. It calls
//     no model and no network, and it never guesses a digit: what it cannot read it
//     leaves out or marks with a low confidence.
//   - [TextExtractor] is where words come from: a PDF's text, an OCR engine.
//   - [loinc.Catalogue] is where codes come from. [loinc.Embedded] holds about 750 common
//     laboratory terms; [loinc.Load] reads the published table instead.
//   - [Job] is one report on its way through the [Service]: staged, read, perhaps
//     reviewed by a person, completed or failed.
//   - [Evidence] is the receipt: page, box and confidence of every field.
package labreport
