// Package rules has the checks of requests and the errors that the packages of orders
// share.
package rules
