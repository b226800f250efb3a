// Package rules has the checks of request fields and the error constructors that the packages below orders share.
package rules
