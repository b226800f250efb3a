// Package double has doubles of providers: small servers that implement a provider's API as documented, for tests
// and for people without a contract with the provider.
//
// A [Server] has a login page, tokens that rotate and expire, pages, a limit with 429, and errors on demand
// ([Faults]). Its people are made up ([NewPerson]): a year of nights, workouts, days and glucose, generated from a
// seed. The doubles are [Dexcom], [GoogleHealth], [Oura], [Polar], [Strava], [Suunto], [Wahoo], [Whoop] and
// [Withings]. Each also returns the data that a connector must produce ([Truth]), computed from the person and not
// from the answers.
//
//	d := double.Whoop(double.Options{People: []*double.Person{double.NewPerson(1, noon, 30)}})
//	server := httptest.NewServer(d)
//
// A double is not the provider: every page says so. Where the documentation is silent, it behaves as the connector's
// package comment says.
package double

// Files in the order of reading: each uses those before it.
//
//	people.go server.go whoop.go suunto.go wahoo.go strava.go polar.go oura.go dexcom.go withings.go
//	googlehealth.go
