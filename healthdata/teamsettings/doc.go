// Package teamsettings keeps the settings that teams have chosen for health data, linking, pulls, orders and events.
// Those packages ask their hosts for settings, and a host may take them from here.
//
// The names to know:
//
//   - [Choices]: the settings that a team has chosen. A nil field leaves a choice to the deployment.
//   - [Service]: reads, checks and changes choices.
//   - [Store]: keeps them.
//
// It only keeps settings: the packages that ask for them apply them.
package teamsettings
