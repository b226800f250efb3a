// Package organisation keeps which teams an organisation has, and the API keys that open
// them.
//
// An organisation has an id and nothing else here: who its people are, and what they pay,
// is the host's. A [Team] belongs to one organisation for good. Its other settings are
// those of teamsettings.Service.
//
//	s, err := organisation.New(store, &organisation.Options{NewKey: newKey})
//	team, err := s.CreateTeam(ctx, org, organisation.NewTeam{Name: "Riverside"})
//	key, secret, err := s.CreateKey(ctx, org, team.ID, organisation.NewKey{Label: "backend"})
//
// A set of services is one environment, so a team that works in the sandbox and in
// production is created in both; with the same [NewTeam].ID, it is known by the same id.
//
// Of a key, only its sum is kept, and it is shown once. A deleted team's id is never given
// out again, so no later team gets its data.
//
// Names to know: [Service], [Store], [Team], [Key].
package organisation
