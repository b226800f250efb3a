package memory

import "time"

// instant returns t as it is kept: in UTC, to the microsecond.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
