// Package documents prints the documents of a lab order.
//
// A [Service] prints requisitions, specimen labels, collection instructions, advance beneficiary notices and
// reports of results of the orders of an [orders.Service]. A [Document] is the content before layout: a title
// and sections, a pure function of the order. A [Printer] lays a Document out as a PDF file;
// adapters/labs/pdfdoc is one.
//
// [Links] makes URLs at which anyone with the URL can read one requisition, without an API key.
package documents
