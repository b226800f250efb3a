// Package double has doubles of providers: small servers that speak a provider's API as it
// is documented, for tests and for people without a contract with the provider.
//
// A [Server] has a login page, tokens that rotate and expire, pages, a limit with 429, and
// errors on demand ([Faults]). Its people are made up ([NewPerson]): a year of nights,
// workouts, days and glucose that follow from a seed. The doubles are [Dexcom],
// [GoogleHealth], [Oura], [Polar], [Strava], [Suunto], [Wahoo], [Whoop] and [Withings]; each
// also returns what a connector must make of its data ([Truth]), computed from the person and
// not from the answers.
//
//	d := double.Whoop(double.Options{People: []*double.Person{double.NewPerson(1, noon, 30)}})
//	server := httptest.NewServer(d)
//
// A double is not the provider: every page says so, and where the documentation is silent it
// does what the connector's package comment says.
package double

// Files in the order of reading: each uses those before it.
//
//	people.go server.go whoop.go suunto.go wahoo.go strava.go polar.go oura.go dexcom.go withings.go
//	googlehealth.go
