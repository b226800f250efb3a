// Package linkingmock has mocks of the interfaces that hosts implement for package linking, for tests of a
// host: they expect calls and answer as told (go.uber.org/mock). A store whose state matters is
// adapters/memory.
package linkingmock

//go:generate go run go.uber.org/mock/mockgen@v0.6.0 -typed -write_package_comment=false -package linkingmock -destination linkingmock_gen.go github.com/healthlab-dev/healthlab/linking OAuthFlow,PasswordFlow,EmailFlow,Puller,Listener,Revoker,Refresher
