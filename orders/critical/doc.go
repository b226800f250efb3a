// Package critical tracks each critical result until a person acknowledges it.
//
// A [Loop] is the notification of one critical result until it is acknowledged. It opens in the
// transaction that stores the result ([Follow]). It ends when a named person acknowledges the result and
// repeats its value ([Service.Acknowledge]), or when the laboratory corrects the result and it is no longer
// critical. Until then the loop passes the team's escalation steps ([Step]), each with an event. After the last
// step the loop still waits ([Escalated]): it is listed and can be acknowledged.
//
//	s, err := critical.New(all.CriticalResults(), &critical.Options{Ladder: ladderOfTeam})
//	go s.Run(ctx)
//	page, err := s.List(ctx, critical.Query{Team: team})
//	loop, err := s.Acknowledge(ctx, team, page.Loops[0].ID, critical.Request{
//		AcknowledgedBy: "Dr. Ada Roe", ReadBack: critical.ReadBack{Value: "31"},
//	})
//
// The laboratory's flag decides whether a result is critical. The package sends no message to a
// person; the receivers of the events do.
package critical
