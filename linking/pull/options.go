package pull

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Options configures a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Limits are the rate limits of providers, by slug. A provider without an entry has the limits of its record. If
	// that has none, only the provider's answers limit the requests.
	Limits map[string]Limits
	// Settings returns the settings of a team. Default: the zero settings for all teams.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Demo generates the data of demo connections. Default: they have none.
	Demo linking.Puller
	// Accessed is called before the service stores a page with data of a user. If it returns an error, nothing is
	// stored, and the page is fetched again later. Default: no call.
	Accessed func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error

	// Every is the interval of fetches of new data. Default 15 minutes.
	Every time.Duration
	// Overlap is how far before the end of the last fetch the next fetch begins, for data that arrives late at the
	// provider. Default 48 hours.
	Overlap time.Duration
	// SweepEvery is the interval of longer fetches of new data, which begin SweepBack before the present. Defaults 24
	// hours and 14 days.
	SweepEvery, SweepBack time.Duration
	// Ahead is how long before its slot (its reserved time) a request may occupy a worker. Default 2 s.
	Ahead time.Duration

	// Workers is the number of concurrent requests in one process. Default 16. One application at a provider
	// uses at most half of them, one team at most three quarters; a quarter is reserved for refreshes.
	Workers int
	// Timeout bounds one request. Default 1 minute.
	Timeout time.Duration
	// Lease is how long a process may work on a claimed task. Default 5 minutes, or twice the Timeout if that is longer;
	// at least twice the Timeout.
	Lease time.Duration
	// Idle is the interval at which an idle process checks for tasks. Default 500 ms.
	Idle time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives failed pulls, refused items and messages, and finished histories. Default: slog.Default().
	Log *slog.Logger
}

const (
	day = 24 * time.Hour
	// newsBefore is how far before the link a fetch of new data may begin.
	newsBefore = 14 * day
	// piece is the longest range of one request.
	piece = 30 * day
	// refreshLimit is the greatest number of refreshes of a user in any hour.
	refreshLimit = 8
)

// TeamSettings are the settings of a team.
type TeamSettings struct {
	// HistoryDays has the number of days of history to fetch, by provider.
	HistoryDays map[string]HistoryDays
}

// HistoryDays is the number of days of history that a team chooses; zero means the number in the provider's record. The
// service reduces a number above the provider's maximum. It ignores the choice if the record does not allow one.
type HistoryDays struct {
	Default   int
	Resources map[string]int
}

func (o *Options) setDefaults() {
	orTime := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orTime(&o.Every, 15*time.Minute)
	orTime(&o.Overlap, 2*day)
	orTime(&o.SweepEvery, day)
	orTime(&o.SweepBack, 14*day)
	orTime(&o.Ahead, 2*time.Second)
	orTime(&o.Timeout, time.Minute)
	orTime(&o.Lease, max(5*time.Minute, 2*o.Timeout))
	orTime(&o.Idle, 500*time.Millisecond)
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (TeamSettings, error) { return TeamSettings{}, nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}
