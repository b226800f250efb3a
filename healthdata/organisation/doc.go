// Package organisation keeps which teams an organisation has, and the API keys that give access to a team's data.
//
// An organisation has only an id in this package: the host keeps its people and its payments. A [Team] belongs to one
// organisation permanently. Package teamsettings keeps the other settings of a team.
//
//	s, err := organisation.New(store, &organisation.Options{NewKey: newKey})
//	team, err := s.CreateTeam(ctx, org, organisation.NewTeam{Name: "Riverside"})
//	key, secret, err := s.CreateKey(ctx, org, team.ID, organisation.NewKey{Label: "backend"})
//
// A deployment is one environment. A team that works in the sandbox and in production is created in both; with the same
// [NewTeam].ID it has the same id in both.
//
// A key is returned once, when it is created; only its SHA-256 is kept. The id of a deleted team is never used again,
// so that no later team gets its data.
//
// Names to know: [Service], [Store], [Team], [Key].
package organisation
