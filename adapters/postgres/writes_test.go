package postgres_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// write is a call that changes something in the database, and is ready to be made.
type write func(context.Context, *postgres.Store) error

// prepare makes what a write of a user is about.
type prepare func(testing.TB, *postgres.Store, healthdata.User) write

// writes are all methods that change something, as Interface.Method. A word behind it tells
// apart what a method does in more than one way.
var writes = map[string]prepare{}

func init() {
	for _, of := range []map[string]prepare{
		personWrites, dataWrites, orderWrites, visitWrites, reviewWrites, linkWrites, bulkWrites, jobWrites, queryWrites, pullWrites, webhookWrites,
		organisationWrites, accessWrites, journalWrites, exportWrites,
	} {
		maps.Copy(writes, of)
	}
}

// looks are the methods that change nothing.
var looks = []string{
	"Users.Get", "Users.List", "Users.Metrics", "Data.View", "Data.Find",
	"Orders.Get", "Orders.FindSample", "Orders.OfUser", "Orders.List", "Orders.CountByStatus", "LabTests.TeamTests",
	"Persons.UserInfo", "Persons.Coverage", "Persons.CoverageAt", "Persons.Payors", "SlotCache.CachedSlots",
	"Centers.CentersNear", "Centers.CentersAt", "Centers.NextCenters",
	"Reviews.Result", "Reviews.Results", "MatchTestRuns.MatchTestRun",
	"Linking.Session", "Linking.Credential", "Apps.App", "TeamClients.Clients", "TeamClients.Client",
	"ParsingJobs.Get", "ParsingJobs.List",
	"Continuous.Get", "Continuous.Find", "Continuous.List", "Continuous.Result", "Continuous.History", "Priorities.Priorities", "Bulk.Connections", "Bulk.Op", "Bulk.Items", "Bulk.Ops", "Teams.Choices",
	"Organisations.Team", "Organisations.Teams", "Organisations.Keys", "Organisations.Key", "Organisations.FindKey",
	"AccessLog.Lines", "AccessLog.Unanchored", "AccessLog.Anchors", "AccessLog.Heads",
	"LabJournal.Record", "LabJournal.Deliveries", "LabJournal.Review",
	"EventBodies.Teams", "PersonExports.Get", "PersonExports.OfUser",
	"Pulls.Tasks", "Pulls.UserStatuses", "Pulls.Quarantined",
	"Endpoints.Get", "Endpoints.List", "Endpoints.Armed", "Deliveries.Due", "WebhookLog.Attempts", "WebhookLog.Message",
	"Ping", "Backlog", "FoldLag", "Run", // Run is RunFolding and RunRetention
	"Signal.Send", "Signal.Listen", // they tell others to look, and no table knows
}

// Every method of every interface is in one of the lists, and the lists name no other
// methods.
func TestEveryWriteIsKnown(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	require.NoError(t, err)
	defer pool.Close()
	unknown := map[string]bool{}
	for _, what := range looks {
		unknown[what] = true
	}
	for what := range writes {
		method, _, _ := strings.Cut(what, " ")
		unknown[method] = true
	}
	interfaces := map[reflect.Type][]string{} // one type may be several interfaces
	store := reflect.ValueOf(postgres.New(pool, nil))
	for i := range store.NumMethod() {
		name, method := store.Type().Method(i).Name, store.Method(i)
		if method.Type().NumOut() == 0 || method.Type().Out(0) == reflect.TypeFor[*personkey.Keys]() {
			continue // a setting, or an option
		}
		if method.Type().Out(method.Type().NumOut()-1) == reflect.TypeFor[error]() { // it returns no interface
			require.True(t, unknown[name], name)
			delete(unknown, name)
			continue
		}
		var in []reflect.Value
		for j := range method.Type().NumIn() {
			in = append(in, reflect.Zero(method.Type().In(j)))
		}
		iface := reflect.ValueOf(method.Call(in)[0].Interface()).Type()
		interfaces[iface] = append(interfaces[iface], name)
	}
	for iface, names := range interfaces {
		for i := range iface.NumMethod() {
			method, known := iface.Method(i).Name, false
			for _, name := range names {
				known = known || unknown[name+"."+method]
				delete(unknown, name+"."+method)
			}
			require.True(t, known, "%v.%s is in the list of writes, or in that of looks", names, method)
		}
	}
	require.Empty(t, unknown, "no interface has them")
}

// eachWrite calls do with every write of a user of its own.
func eachWrite(t *testing.T, s *postgres.Store, do func(what string, w write)) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(writes)) {
		do(what, writes[what](t, s, newPerson(t, s)))
	}
}

// end is when what is claimed at noon comes free.
var end = noon.Add(time.Minute)

// emit returns one event of a user.
func emit(u healthdata.User) []healthlab.Event { return []healthlab.Event{event(u, "k")} }

func deleteUser(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon.Time
		return nil, nil
	})
	require.NoError(t, err)
}

var personWrites = map[string]prepare{
	"Users.Insert": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		other := personOf(u.Team)
		other.Connections = []healthdata.Connection{{Provider: "acme_band", Status: healthdata.Connected, CreatedOn: noon.Time}}
		return func(ctx context.Context, s *postgres.Store) error { return s.Users().Insert(ctx, other, 10) }
	},
	"Users.Update": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Users().Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.ClientUserID = "renamed"
				u.Connections = []healthdata.Connection{{Provider: "acme_band", Status: healthdata.Connected, CreatedOn: noon.Time}}
				return emit(*u), nil
			})
			return err
		}
	},
	"Users.ClaimErasures": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		deleteUser(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Users().ClaimErasures(ctx, end, 10, time.Minute)
			return err
		}
	},
	"Users.Erase": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, heart, 0, 2000, 60)
		placeOrder(t, s, u)
		link(t, s, u)
		fetch(t, s, u)
		deliverTo(t, s, u)
		deleteUser(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error { return s.Users().Erase(ctx, u.Team, u.ID) }
	},
	"Persons.PutUserInfo": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Persons().PutUserInfo(ctx, u.Team, u.ID, people.UserInfo{FirstName: "Ana", DOB: healthlab.DateOf(noon.Time)})
		}
	},
	"Persons.AddCoverage": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		insure(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Persons().AddCoverage(ctx, people.Coverage{
				ID: u.ID.UUID, Team: u.Team, User: u.ID, ValidFrom: noon.Time,
				Record: people.InsuranceRecord{Insured: people.PersonDetails{DOB: healthlab.DateOf(noon.Time)}},
			})
		}
	},
	"Persons.AddPayor": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Persons().AddPayor(ctx, people.StoredPayor{Team: u.Team, Payor: people.Payor{PayorCode: u.ID.String()}, CreatedAt: noon.Time})
		}
	},
}

// merge is a write of samples.
func merge(u healthdata.User, events bool, batches ...healthdata.SampleBatch) write {
	return func(ctx context.Context, s *postgres.Store) error {
		if !events {
			return s.Data().MergeSamples(ctx, u.Team, u.ID, batches, nil)
		}
		return s.Data().MergeSamples(ctx, u.Team, u.ID, batches, func([]series.Outcome) ([]healthlab.Event, error) { return emit(u), nil })
	}
}

func sleepOf(u healthdata.User) healthdata.Record {
	return healthdata.Record{Resource: "sleep", ID: u.ID.UUID, Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{}`)}
}

var dataWrites = map[string]prepare{
	"Data.MergeSamples": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return merge(u, true, minutes(heart, 0, 10, 1))
	},
	"Data.MergeSamples tail": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, heart, 0, 1, 60)
		return merge(u, false, minutes(heart, 1, 1, 60))
	},
	"Data.MergeSamples segment": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, heart, 0, 1, 60)
		return merge(u, true, varied(heart, 1, 500))
	},
	"Data.MergeSamples chunk": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return merge(u, false, minutes(heart, 0, 2000, 1))
	},
	"Data.MergeSamples between": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, heart, 0, 2000, 60)
		mergeInto(t, s, u, heart, 2000, 1, 60)
		return merge(u, true, minutes(heart, 1990, 20, 1), minutes(steps, 0, 1, 1))
	},
	"Data.PutRecords": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Data().PutRecords(ctx, u.Team, u.ID, []healthdata.Record{sleepOf(u)},
				func([]healthdata.PutResult) ([]healthlab.Event, error) { return emit(u), nil })
		}
	},
	"Data.Remove": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, heart, 0, 2000, 60)
		mergeInto(t, s, u, heart, 2000, 1, 60)
		require.NoError(t, s.Data().PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{sleepOf(u)}, nil))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Data().Remove(ctx, u.Team, u.ID, healthdata.Removal{
				Resource: "sleep", IDs: []uuid.UUID{u.ID.UUID},
				Samples: []healthdata.SampleRemoval{{Key: heart, Times: minutes(heart, 1999, 2, 0).Samples.Time, Span: series.PerMinute}},
			})
			return err
		}
	},
	"RunFolding": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, heart, 0, 2000, 60)
		mergedSegment(t, s, u, 2000)
		return func(ctx context.Context, s *postgres.Store) error { return postgres.Fold(ctx, s, u, 1) }
	},
	"Outbox.Append": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error { return s.Outbox().Append(ctx, emit(u)) }
	},
}

func appOf(u healthdata.User) linking.AppSession {
	return linking.AppSession{ID: u.ID.UUID, Team: u.Team, User: u.ID, CreatedAt: noon.Time}
}

// try redeems a code.
func try(u healthdata.User, text string) write {
	return func(ctx context.Context, s *postgres.Store) error {
		return s.Linking().TryCode(ctx, u.Team, [32]byte{1}, text, func(x *linking.CodeAttempt) { _, _ = x.Redeem(time.Now()) })
	}
}

var linkWrites = map[string]prepare{
	"Linking.InsertCode": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Linking().InsertCode(ctx, linkCode(u, u.ID.String()))
		}
	},
	"Linking.TryCode": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.Linking().InsertCode(t.Context(), linkCode(u, u.ID.String())))
		return try(u, u.ID.String())
	},
	"Linking.TryCode wrong": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.Linking().InsertCode(t.Context(), linkCode(u, u.ID.String())))
		return try(u, "nobody's")
	},
	"Linking.InsertSession": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Linking().InsertSession(ctx, linkSession(u))
		}
	},
	"Linking.UpdateSession": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		x := linkSession(u)
		require.NoError(t, s.Linking().InsertSession(t.Context(), x))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Linking().UpdateSession(ctx, u.Team, x.ID, func(x *linking.Session) error {
				x.State = linking.StateCancelled
				return nil
			})
			return err
		}
	},
	"Linking.Complete": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		x := linkSession(u)
		require.NoError(t, s.Linking().InsertSession(t.Context(), x))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Linking().Complete(ctx, completed(x, u.ID.String()))
			return err
		}
	},
	"Linking.Disconnect": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		link(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Linking().Disconnect(ctx, u.Team, u.ID, linkedProvider, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.Connections = nil
				return nil, nil
			})
			return err
		}
	},
	"TeamClients.PutClient": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.TeamClients().PutClient(ctx, clientOf(u))
			return err
		}
	},
	"TeamClients.RetireClient": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		register(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.TeamClients().RetireClient(ctx, u.Team, linkedProvider, noon.Time)
		}
	},
	"TeamClients.ProveClient": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		register(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.TeamClients().ProveClient(ctx, u.Team, linkedProvider, "id", "https://a.example", noon.Time)
		}
	},
	"TeamClients.ForgetClients": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		register(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.TeamClients().ForgetClients(ctx, u.Team, linkedProvider, noon.Time)
			return err
		}
	},
	"Apps.InsertApp": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error { return s.Apps().InsertApp(ctx, appOf(u)) }
	},
	"Apps.UpdateApp": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.Apps().InsertApp(t.Context(), appOf(u)))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Apps().UpdateApp(ctx, u.Team, u.ID.UUID, func(a *linking.AppSession) error {
				a.Rotations++
				return nil
			})
			return err
		}
	},
	"Apps.DeleteApps": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.Apps().InsertApp(t.Context(), appOf(u)))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Apps().DeleteApps(ctx, u.Team, u.ID, u.ID.UUID)
			return err
		}
	},
	"Credentials.UpdateCredential": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		link(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Credentials().UpdateCredential(ctx, u.Team, u.ID, linkedProvider, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
				c.Secret.Box = []byte("next box")
				u.Connections[0].Status = healthdata.ConnectionError
				return emit(*u), nil
			})
			return err
		}
	},
}

var jobWrites = map[string]prepare{
	"ParsingJobs.Insert": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.ParsingJobs().Insert(ctx, jobOf(u), 10, emit(u))
		}
	},
	"ParsingJobs.Update": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		j := jobOf(u)
		require.NoError(t, s.ParsingJobs().Insert(t.Context(), j, 0, nil))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.ParsingJobs().Update(ctx, u.Team, j.ID, func(*labreport.Job) ([]healthlab.Event, error) { return emit(u), nil })
			return err
		}
	},
	"ParsingJobs.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.ParsingJobs().Insert(t.Context(), jobOf(u), 0, nil))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.ParsingJobs().Claim(ctx, 10, time.Minute)
			return err
		}
	},
}

var water = healthdata.SeriesKey{Resource: "water", Provider: "acme_band", SourceType: "watch"}

func queryOf(u healthdata.User) continuous.Query {
	q := watching(u.Team, water.Resource)
	q.ID.UUID = u.ID.UUID
	return q
}

// ask adds a continuous query of a user's team.
func ask(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	require.NoError(t, s.Continuous().Insert(t.Context(), queryOf(u)))
}

func claimTasks(ctx context.Context, s *postgres.Store) ([]continuous.Task, error) {
	return s.ContinuousWork().Claim(ctx, 1000, time.Hour)
}

var queryWrites = map[string]prepare{
	"Continuous.Insert": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error { return s.Continuous().Insert(ctx, queryOf(u)) }
	},
	"Continuous.Update": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		ask(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Continuous().Update(ctx, u.Team, queryOf(u).ID, func(q *continuous.Query) error {
				q.Title = "Water"
				return nil
			})
			return err
		}
	},
	"ContinuousWork.Backfill": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		mergeInto(t, s, u, water, 0, 1, 1)
		ask(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.ContinuousWork().Backfill(ctx, 10)
			return err
		}
	},
	"ContinuousWork.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		ask(t, s, u)
		mergeInto(t, s, u, water, 0, 1, 1)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := claimTasks(ctx, s)
			return err
		}
	},
	"ContinuousWork.Finish": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		ask(t, s, u)
		mergeInto(t, s, u, water, 0, 1, 1)
		tasks, err := claimTasks(t.Context(), s)
		require.NoError(t, err)
		i := slices.IndexFunc(tasks, func(k continuous.Task) bool { return k.User == u.ID })
		require.GreaterOrEqual(t, i, 0)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.ContinuousWork().Finish(ctx, tasks[i], continuous.Outcome{Status: continuous.TaskCompleted, Table: []byte("x"), Events: emit(u)})
		}
	},
	"Teams.UpdateChoices": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Teams().UpdateChoices(ctx, u.Team, func(teamsettings.Choices) (teamsettings.Choices, error) {
				yes := true
				return teamsettings.Choices{RejectDuplicates: &yes}, nil
			})
			return err
		}
	},
	"Priorities.UpdatePriorities": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		ask(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Priorities().UpdatePriorities(ctx, u.Team, func([]aggregate.Priority) ([]aggregate.Priority, error) {
				return []aggregate.Priority{{Provider: "acme_band", Number: 1}}, nil
			})
			return err
		}
	},
}

func refOf(u healthdata.User) pull.Ref {
	return pull.Ref{Team: u.Team, User: u.ID, Provider: linkedProvider}
}

func newsOf(u healthdata.User) pull.Key {
	return pull.Key{Ref: refOf(u), Resource: "sleep", Kind: pull.News}
}

// plan gives a connection one task.
func plan(u healthdata.User) write {
	return func(ctx context.Context, s *postgres.Store) error {
		return s.Pulls().Plan(ctx, refOf(u), func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error) {
			return pull.ConnectionPlan{Tasks: []pull.Task{{Key: newsOf(u), Due: noon.Time}}, Events: emit(u), Due: noon.Time}, nil
		})
	}
}

// planned gives a user a connection that is due, with a task.
func planned(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	link(t, s, u)
	require.NoError(t, plan(u)(t.Context(), s))
}

var pullWrites = map[string]prepare{
	"Pulls.Plan": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		planned(t, s, u)
		return plan(u)
	},
	"Pulls.ClaimConnections": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		planned(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Pulls().ClaimConnections(ctx, 1000, noon.Time, end)
			return err
		}
	},
	"Pulls.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		planned(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Pulls().Claim(ctx, pull.ClaimQuery{N: 1000, Now: noon.Time, Lease: time.Minute})
			return err
		}
	},
	"Pulls.Update": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		planned(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Pulls().Update(ctx, newsOf(u), func(k *pull.Task) ([]healthlab.Event, error) {
				k.Turn++
				return emit(u), nil
			})
			return err
		}
	},
	"Pulls.Notify": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		planned(t, s, u)
		n := pull.Notice{ID: sha256.Sum256(u.ID.UUID[:]), Provider: linkedProvider, ExternalUserID: u.ID.String(), At: noon.Time}
		return func(ctx context.Context, s *postgres.Store) error {
			told, err := s.Pulls().Notify(ctx, n, noon.Time, func(k *pull.Task) { k.Turn++ })
			if err == nil && told != 1 {
				return fmt.Errorf("%d tasks", told)
			}
			return err
		}
	},
	"Pulls.UpdateBudgets": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		key := pull.BudgetKey{Team: u.Team, User: u.ID, Provider: linkedProvider, Name: "user"}
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Pulls().UpdateBudgets(ctx, []pull.BudgetKey{key}, func([]pull.Budget) error { return nil })
		}
	},
	"Pulls.Quarantine": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		link(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Pulls().Quarantine(ctx, refOf(u), []pull.RefusedItem{{ID: u.ID.UUID, Resource: "sleep", At: healthlab.At(noon.Time)}})
		}
	},
}

func endpointOf(u healthdata.User) webhook.Endpoint {
	return webhook.Endpoint{ID: webhook.EndpointID{UUID: u.ID.UUID}, Team: u.Team, URL: "https://receiver.example.com"}
}

// listen gives the team of a user an endpoint.
func listen(t testing.TB, s *postgres.Store, u healthdata.User) webhook.EndpointID {
	t.Helper()
	require.NoError(t, s.Endpoints().Insert(t.Context(), endpointOf(u), 50))
	return endpointOf(u).ID
}

// sending routes and claims one message of a user.
func sending(t testing.TB, s *postgres.Store, u healthdata.User) webhook.Delivery {
	t.Helper()
	to := listen(t, s, u)
	appendEvents(t, s, event(u, "k"))
	route(t, s)
	claimed := claim(t, s, to)
	require.Len(t, claimed, 1)
	return claimed[0]
}

func sightingOf(u healthdata.User) receiver.Claim {
	return receiver.Claim{
		Token: u.ID.UUID, ID: u.ID.String(), Key: "item/" + u.ID.String(), Version: receiver.Version{Seq: 1},
		Lease: time.Minute, Keep: time.Hour, KeepVersion: time.Hour,
	}
}

// see claims a message that came in.
func see(u healthdata.User) write {
	return func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Seen("one").Claim(ctx, sightingOf(u))
		return err
	}
}

var webhookWrites = map[string]prepare{
	"EventBodies.EmptyBodies": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		appendEvents(t, s, event(u, "k")) // for no endpoint
		route(t, s)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.EventBodies().EmptyBodies(ctx, u.Team, time.Now().Add(time.Hour), 10)
			return err
		}
	},
	"Endpoints.Insert": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Endpoints().Insert(ctx, endpointOf(u), 50)
		}
	},
	"Endpoints.Update": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		sending(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Endpoints().Update(ctx, u.Team, endpointOf(u).ID, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
				e.Disabled = true
				return emit(u), nil
			})
			return err
		}
	},
	"Endpoints.Delete": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		sending(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Endpoints().Delete(ctx, u.Team, endpointOf(u).ID)
		}
	},
	"Deliveries.Route": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		listen(t, s, u)
		appendEvents(t, s, event(u, "k"), event(u, "k"))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Deliveries().Route(ctx, nil, 1000)
			return err
		}
	},
	"Deliveries.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		to := listen(t, s, u)
		appendEvents(t, s, event(u, "k"))
		route(t, s)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Deliveries().Claim(ctx, webhook.Claim{Quotas: []webhook.Quota{{Endpoint: to, Max: 10}}, Lease: time.Minute})
			return err
		}
	},
	"Deliveries.RecordOutcomes": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		d := sending(t, s, u)
		appendEvents(t, s, event(u, "k"))
		route(t, s)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Deliveries().RecordOutcomes(ctx, []webhook.Outcome{{Delivery: d, State: webhook.Succeeded, Sent: true, Status: 200, Class: webhook.ClassOK}})
			return err
		}
	},
	"Deliveries.Release": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		d := sending(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Deliveries().Release(ctx, []webhook.Released{{Lease: d.Lease}})
		}
	},
	"Deliveries.Replay": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		d := sending(t, s, u)
		succeed(t, s, d)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Deliveries().Replay(ctx, webhook.Replay{Team: u.Team, Endpoint: d.Endpoint, Event: d.Event})
			return err
		}
	},
	"RunRetention": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		sending(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error { return postgres.DropStale(ctx, s, u.Team) }
	},
	"Seen.Claim": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write { return see(u) },
	"Seen.Done": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, see(u)(t.Context(), s))
		return func(ctx context.Context, s *postgres.Store) error { return s.Seen("one").Done(ctx, sightingOf(u)) }
	},
	"Seen.Release": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, see(u)(t.Context(), s))
		return func(ctx context.Context, s *postgres.Store) error { return s.Seen("one").Release(ctx, sightingOf(u)) }
	},
}
