// Package linking connects a person's accounts at providers of health data, such as makers of wearables, to a user.
// The person signs in at the provider once, on a phone or in a browser. A sign-in connects the account only to the
// user for whom the team has made the link token.
//
//	links, err := linking.New(store.Linking(), health, connectors, sealer, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key}})
//	issued, err := links.CreateToken(ctx, team, linking.NewToken{User: user})
//	result, err := links.SignIn(ctx, issued.Token, linking.PasswordSignIn{Provider: "acme_scale", …})
//
// What a host calls and gets:
//
//   - [Service] makes link codes and link tokens. A link code ([Service.CreateCode], [Service.Redeem]) binds a
//     companion app to one user. A link token ([Service.CreateToken]) opens the link pages, or a customer's own
//     pages, for one user. It works for an hour and for one successful connection; failed tries do not use it up.
//   - [Session] is the state of a link token. [Diagram] draws its states.
//   - [Result] and [Outcome] are the results of a try, with an [ErrorType] if the person can solve the problem.
//   - [ProviderConnector] calls one provider: an adapter implements it.
//   - [ClientRegistry] manages the OAuth clients that teams have registered at providers.
//   - [Apps] manages companion apps that act for one user each, with tokens of their own.
//
// A sign-in calls the provider and then writes once: the connection, its event, the sealed credential and the end of
// the token are one transaction of the [Store].
//
// # Binding a sign-in to a browser
//
// An attacker who begins a sign-in at a provider's own page and makes another person finish it would get that person's
// data. So the link pages set a secret ([Service.NewBrowserSecret]) as a cookie in the browser, and pass it to the
// Service when the person leaves for the provider ([OAuthSignIn]) and comes back ([Callback]). A callback in another
// browser connects nothing. If a customer uses pages of its own, the Service does not see the browser before the
// callback. So these pages must keep the token in the person's session, and open the provider's page only when that
// person clicks. [TeamSettings].PagesOnly refuses sign-ins that do not begin on the link pages.
//
// # Guessing codes
//
// A link token has 256 random bits. A link code has only 32, because its format is fixed. So wrong tries are limited by
// client ([MaxWrongPerClient]) and by code ([MaxWrongPerCode]): one client guesses a given code of one hour with
// probability 9.3e-9. docs/link-codes.md shows the calculation.
package linking

// Files in the order of reading: each uses those before it.
//
//	puller.go listener.go error.go scope.go link_code.go redirect.go connector.go token.go team_client.go
//	client_connectors.go team_settings.go offers.go session.go token_signer.go code_attempt.go store.go
//	client_registry.go service.go result.go app_token.go service_providers.go apps.go
//	credential_refresher.go link_attempt.go rows.go rows_client.go service_sessions.go rows_code.go
//	service_codes.go accept.go rows_credential.go rows_session.go connect.go flow.go rows_connection.go
//	rows_app.go service_connections.go
