// Package rules has the checks of request fields and the error constructors that package orders and the
// packages below it share.
package rules
