// Package linkingtest has the conformance suites of the interfaces of package linking.
//
//   - [RunStore] checks [linking.Store]. [RunFlows] runs a [linking.Service] on the store under random actions,
//     and [BenchFlows] measures how fast it creates link tokens.
//   - [RunCredentialStore] checks [linking.CredentialStore]. [RunCredentialRefresh] refreshes credentials on the store
//     in processes that crash.
//   - [RunApps] checks [linking.AppSessions], [RunClients] checks [linking.TeamClients].
//   - [RunConnector] checks [linking.ProviderConnector].
//
// An adapter runs them so:
//
//	func TestLinking(t *testing.T) {
//		linkingtest.RunStore(t, func(testing.TB) linkingtest.StoreHarness {
//			s := memory.New(nil)
//			return linkingtest.StoreHarness{
//				Linking: s.Linking(), Users: s.Users(), Messages: s.WebhookLog(), Credentials: s.Credentials(),
//			}
//		})
//	}
//
//	func TestConnector(t *testing.T) {
//		linkingtest.RunConnector(t, func(t testing.TB) linkingtest.ConnectorHarness {
//			provider := newDouble(t) // an HTTP server that answers as the provider does
//			return linkingtest.ConnectorHarness{
//				Connector: New(provider.URL), Approve: provider.SignIn,
//				Resources: []string{"glucose"}, From: monday, To: monday.AddDate(0, 0, 7),
//			}
//		})
//	}
//
// It imports package testing: import it in tests only.
package linkingtest

// Files in the order of reading: each uses those before it.
//
//	store.go clients.go connector.go connector_flows.go credential_refresh.go flows.go judge.go
//	connector_pulls.go credential_store.go apps.go store_complete.go
