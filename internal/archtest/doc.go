// Package archtest tests the structure of the module: the allowed imports of each
// package, the exported names of the root package, package comments and examples, the
// size of files and packages, and strings that no tracked file may contain.
//
// The rules are the tables in law_test.go. A new import edge needs a decision record in
// docs/adr first; then the table changes.
package archtest
