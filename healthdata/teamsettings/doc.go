// Package teamsettings keeps what teams have chosen: for health data, linking, pulls, orders and
// events. Those packages ask their hosts for settings, and a host may take them from here.
//
// The names to know:
//
//   - [Choices]: what a team has chosen. Nil leaves a choice to the deployment.
//   - [Service]: reads and changes choices, and checks them.
//   - [Store]: keeps them.
//
// It applies no choice: that is the business of the packages that ask for it.
package teamsettings
