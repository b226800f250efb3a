//go:build !race

package pdftext_test

// underRace says that the memory of a child says nothing about the file.
const underRace = false
