package labreporttest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

type jobChange = func(*labreport.Job) ([]healthlab.Event, error)

// brokenJobs passes on what it is not told to break.
type brokenJobs struct {
	overriddenJobs
	mu   sync.Mutex
	kept map[labreport.JobID]labreport.Job

	insert func(context.Context, labreport.Job, int, []healthlab.Event) error
}

func (b *brokenJobs) Insert(ctx context.Context, j labreport.Job, quota int, events []healthlab.Event) error {
	b.mu.Lock()
	b.kept[j.ID] = j
	b.mu.Unlock()
	if b.insert != nil {
		return b.insert(ctx, j, quota, events)
	}
	return b.Store.Insert(ctx, j, quota, events)
}

func brokenJobsOf(s *memory.Store, how func(*brokenJobs)) *brokenJobs {
	b := &brokenJobs{overriddenJobs: overriddenJobs{Store: s.ParsingJobs()}, kept: map[labreport.JobID]labreport.Job{}}
	how(b)
	return b
}

func jobMutant(name, dies string, how func(*brokenJobs)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		labreporttest.RunStore(t, func(testing.TB) labreporttest.StoreHarness {
			clock := conformance.NewClock(time.Unix(0, 0))
			s := memory.New(&memory.Options{Now: clock.Now})
			return labreporttest.StoreHarness{Jobs: brokenJobsOf(s, how), Messages: s.WebhookLog(), SetClock: clock.Set}
		})
	}, Subtest: dies}
}

func jobErasureMutant(name, dies string, how func(*labreporttest.ErasureHarness, *memory.Store)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		labreporttest.RunErasure(t, func(testing.TB) labreporttest.ErasureHarness {
			clock := conformance.NewClock(time.Unix(0, 0))
			s := memory.New(&memory.Options{Now: clock.Now})
			h := labreporttest.ErasureHarness{Users: s.Users(), Jobs: s.ParsingJobs(), SetClock: clock.Set}
			how(&h, s)
			return h
		})
	}, Subtest: dies}
}

var brokenStores = []conformance.Broken{
	jobMutant("drop the review", "Insert/RoundTrip", func(b *brokenJobs) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
			j, err := b.Store.Get(ctx, team, id)
			j.Review = nil
			return j, err
		}
	}),
	jobMutant("make nil empty", "Insert/Empty", func(b *brokenJobs) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
			j, err := b.Store.Get(ctx, team, id)
			j.Files = append([]labreport.StoredFile{}, j.Files...)
			return j, err
		}
	}),
	jobMutant("take an id twice", "Insert/Duplicate", func(b *brokenJobs) {
		b.insert = func(ctx context.Context, j labreport.Job, quota int, events []healthlab.Event) error {
			if err := b.Store.Insert(ctx, j, quota, events); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}
	}),
	jobMutant("take jobs of nobody", "Insert/Refused", func(b *brokenJobs) {
		b.insert = func(ctx context.Context, j labreport.Job, quota int, events []healthlab.Event) error {
			if j.User.IsZero() {
				j.User.UUID = uuid.New()
			}
			return b.Store.Insert(ctx, j, quota, events)
		}
	}),
	jobMutant("drop events", "Insert/WithItsEvents", func(b *brokenJobs) {
		b.insert = func(ctx context.Context, j labreport.Job, quota int, _ []healthlab.Event) error {
			return b.Store.Insert(ctx, j, quota, nil)
		}
	}),
	jobMutant("have no quota", "Insert/QuotaCountsJobsThatHaveNotFailed", func(b *brokenJobs) {
		b.insert = func(ctx context.Context, j labreport.Job, _ int, events []healthlab.Event) error {
			return b.Store.Insert(ctx, j, 0, events)
		}
	}),
	jobMutant("count before they insert", "Insert/QuotaHoldsUnderRace", func(b *brokenJobs) {
		b.insert = func(ctx context.Context, j labreport.Job, quota int, events []healthlab.Event) error {
			all, err := b.Store.List(ctx, labreport.Query{Team: j.Team, Size: 100})
			if quota > 0 && len(all) >= quota {
				return errors.Join(err, healthlab.Exhausted)
			}
			conformance.Pause()
			return b.Store.Insert(ctx, j, 0, events)
		}
	}),
	jobMutant("show other teams' jobs", "Teams/SeeNothingOfEachOther", func(b *brokenJobs) {
		b.get = func(ctx context.Context, _ healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
			return b.Store.Get(ctx, b.kept[id].Team, id)
		}
	}),
	jobMutant("hand out what they were given", "Aliasing", func(b *brokenJobs) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
			j, err := b.Store.Get(ctx, team, id)
			j.Draft = b.kept[id].Draft
			return j, err
		}
	}),
	jobMutant("write without the events", "Update/WithItsEvents", func(b *brokenJobs) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change jobChange) (labreport.Job, error) {
			return b.Store.Update(ctx, team, id, func(j *labreport.Job) ([]healthlab.Event, error) {
				_, err := change(j)
				return nil, err
			})
		}
	}),
	jobMutant("let a change move a job", "Update/KeepsItsOwn", func(b *brokenJobs) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change jobChange) (labreport.Job, error) {
			var asked labreport.Job
			j, err := b.Store.Update(ctx, team, id, func(j *labreport.Job) ([]healthlab.Event, error) {
				events, err := change(j)
				asked = *j
				return events, err
			})
			j.User = asked.User
			return j, err
		}
	}),
	jobMutant("write what change refused", "Update/ErrorWritesNothing", func(b *brokenJobs) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change jobChange) (labreport.Job, error) {
			var own error
			j, err := b.Store.Update(ctx, team, id, func(j *labreport.Job) ([]healthlab.Event, error) {
				_, own = change(j)
				return nil, nil
			})
			return j, errors.Join(own, err)
		}
	}),
	jobMutant("lose updates", "Update/NoLostUpdates", func(b *brokenJobs) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change jobChange) (labreport.Job, error) {
			old, err := b.Store.Get(ctx, team, id)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			return b.Store.Update(ctx, team, id, func(j *labreport.Job) ([]healthlab.Event, error) {
				*j = old
				return change(j)
			})
		}
	}),
	jobMutant("list jobs without corrections", "List/Corrected", func(b *brokenJobs) {
		b.list = func(ctx context.Context, q labreport.Query) ([]labreport.Job, error) {
			q.Corrected = false
			return b.Store.List(ctx, q)
		}
	}),
	jobMutant("list the oldest first", "List/NewestFirst", func(b *brokenJobs) {
		b.list = func(ctx context.Context, q labreport.Query) ([]labreport.Job, error) {
			jobs, err := b.Store.List(ctx, q)
			slices.Reverse(jobs)
			return jobs, err
		}
	}),
	jobMutant("list everybody's", "List/OfOneUser", func(b *brokenJobs) {
		b.list = func(ctx context.Context, q labreport.Query) ([]labreport.Job, error) {
			q.User = healthlab.UserID{}
			return b.Store.List(ctx, q)
		}
	}),
	jobMutant("forget leases", "Claim/OnceUntilTheLeaseEnds", func(b *brokenJobs) {
		b.claim = func(ctx context.Context, n int, _ time.Duration) ([]labreport.Job, error) {
			return b.Store.Claim(ctx, n, 0)
		}
	}),
	jobMutant("count leases from the caller's clock", "Claim/OnceUntilTheLeaseEnds", func(b *brokenJobs) {
		b.claim = func(ctx context.Context, n int, lease time.Duration) ([]labreport.Job, error) {
			jobs, err := b.Store.Claim(ctx, n, lease)
			for i := range jobs {
				until := time.Now().Add(lease)
				jobs[i], _ = b.Store.Update(ctx, jobs[i].Team, jobs[i].ID, func(j *labreport.Job) ([]healthlab.Event, error) {
					j.DueAt = until
					return nil, nil
				})
			}
			return jobs, err
		}
	}),
	jobMutant("claim in any order", "Claim/LongestDueFirst", func(b *brokenJobs) {
		b.claim = func(ctx context.Context, n int, lease time.Duration) ([]labreport.Job, error) {
			jobs, err := b.Store.Claim(ctx, n, lease)
			slices.Reverse(jobs)
			return jobs, err
		}
	}),
	jobMutant("claim twice", "Claim/NoJobTwice", func(b *brokenJobs) {
		var mu sync.Mutex
		var last []labreport.Job
		b.claim = func(ctx context.Context, n int, lease time.Duration) ([]labreport.Job, error) {
			jobs, err := b.Store.Claim(ctx, n, lease)
			mu.Lock()
			defer mu.Unlock()
			out := append(slices.Clone(jobs), last...)
			last = jobs
			return out, err
		}
	}),
	jobMutant("go on without their caller", "Context/Ended", func(b *brokenJobs) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change jobChange) (labreport.Job, error) {
			return b.Store.Update(context.WithoutCancel(ctx), team, id, change)
		}
	}),
	jobErasureMutant("keep the jobs of the erased", "Erase/Jobs", func(h *labreporttest.ErasureHarness, _ *memory.Store) {
		h.Jobs = memory.New(nil).ParsingJobs()
	}),
	jobErasureMutant("forget the files of the erased", "Erase/FilesAreStillToBeDeleted", func(h *labreporttest.ErasureHarness, s *memory.Store) {
		h.Jobs = brokenJobsOf(s, func(b *brokenJobs) {
			b.claim = func(ctx context.Context, n int, lease time.Duration) ([]labreport.Job, error) {
				jobs, err := b.Store.Claim(ctx, n, lease)
				return slices.DeleteFunc(jobs, func(j labreport.Job) bool { return j.User.IsZero() }), err
			}
		})
	}),
	jobErasureMutant("erase in all teams", "Erase/NothingElse", func(h *labreporttest.ErasureHarness, s *memory.Store) {
		h.Jobs = brokenJobsOf(s, func(b *brokenJobs) {
			b.get = func(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
				for other, j := range b.kept {
					if _, err := b.Store.Get(ctx, j.Team, other); err != nil && j.User == b.kept[id].User {
						return labreport.Job{}, healthlab.NotFound
					}
				}
				return b.Store.Get(ctx, team, id)
			}
		})
	}),
}
