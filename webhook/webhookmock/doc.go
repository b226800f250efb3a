// Package webhookmock has mocks of the interfaces that hosts implement for package webhook, for tests of a host. A mock
// expects calls and returns the results that the test sets (go.uber.org/mock). A test that needs a working store uses
// adapters/memory.
package webhookmock

//go:generate go run go.uber.org/mock/mockgen@v0.6.0 -typed -write_package_comment=false -package webhookmock -destination webhookmock_gen.go github.com/healthlab-dev/healthlab/webhook Notifier,Signal
