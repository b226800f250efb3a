// Package documents answers one question: what is printed of a lab order?
//
// A [Service] prints requisitions, specimen labels, collection instructions, advance
// beneficiary notices and reports of results of the orders of an [orders.Service]. A
// [Document] is what stands on one: a title and sections, a pure function of the order. A
// [Printer] lays it out as a PDF file; adapters/labs/pdfdoc is one.
//
// [Links] make URLs at which the holder reads one requisition without a key.
package documents
