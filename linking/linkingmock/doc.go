// Package linkingmock has mocks of the interfaces that hosts implement for package linking, for tests of a host. A mock
// expects calls and returns the results that the test sets (go.uber.org/mock). A test that needs a working store uses
// adapters/memory.
package linkingmock

//go:generate go run go.uber.org/mock/mockgen@v0.6.0 -typed -write_package_comment=false -package linkingmock -destination linkingmock_gen.go github.com/healthlab-dev/healthlab/linking OAuthFlow,PasswordFlow,EmailFlow,Puller,Listener,Revoker,Refresher
