package archtest_test

import (
	"path"
	"slices"
	"strings"
)

const module = "github.com/healthlab-dev/healthlab"

// Package paths are relative to the module root; the root itself is ".". In a list,
// "x/..." means x and the packages below it.

// domain lists the domain packages. A package below one of them without a row of its own
// follows that package's row.
var domain = []string{
	"store", "healthdata", "healthdata/series", "healthdata/organisation", "healthdata/tables", "healthdata/teamsettings", "linking", "linking/pull", "linking/bulk", "aggregate", "aggregate/continuous", "aggregate/continuous/ehr", "aggregate/parquet", "orders", "orders/exchange", "orders/visits", "orders/catalogue", "orders/people", "orders/appointment", "orders/labresult", "orders/simulation", "orders/documents", "orders/idempotency", "orders/critical", "orders/labjournal", "orders/portal", "labreport", "labreport/loinc", "labreport/refrange", "aggregate/labhistory", "aggregate/glucoseprofile", "internal/ucum", "webhook", "privacy/accesslog", "privacy/personkey", "privacy/personexport",
}

// suites lists the packages of conformance suites. Each stands beside the package whose
// interfaces it checks, and has its name with "test" after it.
var suites = []string{
	"privacy/accesslog/accesslogtest", "aggregate/aggregatetest", "healthdata/healthdatatest",
	"healthdata/organisation/organisationtest", "healthdata/teamsettings/teamsettingstest", "labreport/labreporttest", "linking/linkingtest", "linking/bulk/bulktest",
	"linking/pull/pulltest", "orders/orderstest", "orders/appointment/appointmenttest", "orders/catalogue/cataloguetest",
	"orders/people/peopletest", "orders/labjournal/labjournaltest", "privacy/personexport/personexporttest", "privacy/personkey/personkeytest", "store/storetest", "webhook/webhooktest", "webhook/receiver/receivertest",
}

func forSuites(table map[string][]string, allowed []string) map[string][]string {
	for _, pkg := range suites {
		table[pkg] = allowed
	}
	return table
}

// mayImport lists the packages of this module that a package may import. Every package
// needs a row, its own or that of a folder above it.
var mayImport = forSuites(map[string][]string{
	".":                    {},
	"store":                {"."},
	"internal/eventlog":    {".", "store", "webhook"},
	"internal/queryoracle": append([]string{".", "internal/prove"}, domain...),
	"internal/fsm":         {},
	"internal/work":        {"."},
	"internal/prove":       {},
	"internal/conformance": {".", "internal/prove"},
	"internal/archtest":    {},
	"internal/audit":       {},
	"internal/fold":        {"."},
	"internal/nearest":     {},

	"internal/ucum":                 {".", "internal/fold"},
	"privacy/accesslog":             {".", "store", "internal/work"},
	"privacy/personkey":             {".", "store"},
	"privacy/personexport":          {".", "store", "internal/work"},
	"webhook":                       {".", "store", "internal/nearest", "internal/fsm", "internal/work"},
	"healthdata/series":             {".", "store", "internal/fsm", "internal/work"},
	"healthdata/internal/check":     {".", "store"},
	"healthdata":                    {".", "store", "internal/fsm", "internal/nearest", "internal/work", "internal/ucum", "healthdata/series", "healthdata/internal/check"},
	"healthdata/organisation":       {".", "store", "internal/work", "healthdata/internal/check"},
	"healthdata/teamsettings":       {".", "store", "internal/nearest", "healthdata", "healthdata/internal/check"},
	"healthdata/tables":             {".", "store", "healthdata", "healthdata/internal/check"},
	"linking":                       {".", "store", "internal/nearest", "internal/fsm", "internal/work", "healthdata", "healthdata/series"},
	"linking/pull":                  {".", "store", "internal/nearest", "internal/fsm", "internal/work", "healthdata", "linking"},
	"linking/bulk":                  {".", "store", "internal/nearest", "internal/work", "healthdata", "linking", "linking/pull"},
	"aggregate":                     {".", "store", "internal/nearest", "healthdata", "healthdata/series", "healthdata/tables"},
	"aggregate/internal/strictjson": {".", "internal/nearest"},
	"aggregate/continuous":          {".", "store", "internal/work", "aggregate", "aggregate/internal/strictjson"},
	"aggregate/continuous/ehr":      {".", "store", "aggregate"},
	"aggregate/parquet":             {"healthdata", "healthdata/tables", "aggregate"},
	"aggregate/glucoseprofile":      {".", "aggregate", "healthdata"},
	"orders/catalogue":              {".", "store", "orders/internal/rules", "orders/internal/textsearch", "labreport/refrange"},
	"orders/people":                 {".", "store", "orders/catalogue", "orders/internal/rules", "orders/internal/textsearch"},
	"orders/appointment":            {".", "store", "internal/fsm", "internal/work", "orders/catalogue", "orders/internal/rules"},
	"orders/exchange":               {".", "store", "internal/work", "orders", "orders/catalogue", "orders/people", "orders/labresult", "orders/internal/rules", "orders/internal/terms"},
	"orders/visits":                 {".", "internal/work", "orders", "orders/appointment", "orders/catalogue", "orders/people", "orders/internal/rules"},
	"orders/labjournal":             {".", "store", "orders", "orders/exchange"},
	"orders/labresult":              {".", "store", "orders/catalogue", "orders/people", "orders/internal/rules", "labreport/refrange"},
	"orders/portal":                 {".", "store", "orders/internal/rules"},
	"orders/critical":               {".", "store", "internal/work", "orders/catalogue", "orders/labresult", "orders/internal/rules"},
	"orders":                        {".", "store", "internal/nearest", "internal/fsm", "internal/work", "healthdata", "orders/catalogue", "orders/people", "orders/appointment", "orders/labresult", "orders/critical", "orders/portal"},
	"orders/simulation":             {".", "store", "internal/work", "orders", "orders/exchange", "orders/catalogue", "orders/idempotency", "orders/labresult", "orders/people", "orders/internal/rules"},
	"orders/idempotency":            {".", "store", "internal/work", "orders"},
	"orders/documents":              {".", "store", "orders", "orders/exchange", "orders/visits", "orders/catalogue", "orders/people", "orders/labresult", "orders/internal/rules"},
	"labreport/loinc":               {".", "store", "internal/fold", "internal/ucum"},
	"labreport/refrange":            {".", "internal/fold", "internal/ucum"},
	"labreport":                     {".", "store", "internal/nearest", "internal/fsm", "internal/work", "internal/fold", "labreport/loinc", "labreport/refrange", "internal/ucum"},

	// Reads what two siblings keep, for one history of a person.
	"aggregate/labhistory": {".", "aggregate", "internal/ucum", "orders", "orders/catalogue", "orders/labresult", "orders/people", "labreport", "labreport/loinc", "labreport/refrange"},

	// Conformance suites stand beside the interfaces that they test.
	"webhook/webhooktest":     {".", "webhook"},
	"labreport/labreporttest": {".", "labreport"},
	"linking/linkingtest":     {".", "linking", "healthdata"},

	"webhook/webhookmock":     {"webhook"},
	"labreport/labreportmock": {".", "labreport"},
	"linking/linkingmock":     {".", "linking"},

	"webhook/receiver": append([]string{"."}, domain...),

	// The row of every folder in adapters. Adapters do not import each other. They implement
	// receiver.Seen, so they may import webhook/receiver.
	"adapters": append([]string{".", "webhook/receiver", "internal/work"}, domain...),
	// An unknown measure is answered with the nearest ones.
	"adapters/operations/mcp": append([]string{".", "internal/nearest"}, domain...),
	// Its Store has the stores of all packages over its engine.
	"adapters/memory":          append([]string{".", "webhook/receiver", "adapters/stores", "adapters/memory/memstore"}, domain...),
	"adapters/memory/memstore": {"store"},
	// Configured connectors sign in and make requests as the connectors in Go do.
	"adapters/devices/oauthrest": append([]string{".", "webhook/receiver", "internal/work", "adapters/devices/providers/rest"}, domain...),
	// Recordings of providers are files: FIT of Wahoo, TCX of Google Health.
	"adapters/devices/providers/recording": append([]string{".", "adapters/devices/fileimport"}, domain...),
	// The reader of Health Connect's export takes the sink and the options of an import.
	"adapters/sqlite/healthconnect": append([]string{".", "adapters/devices/fileimport"}, domain...),
	// Files that are sent run under the rules of the API.
	"adapters/devices/fileupload": append([]string{".", "adapters/httpapi", "adapters/devices/fileimport"}, domain...),
	// FHIR runs under the rules of the API, and writes units in UCUM.
	"adapters/fhir": append([]string{".", "internal/work", "adapters/httpapi", "internal/ucum"}, domain...),
	// The assembly mounts the API, and exports for persons.
	"adapters/service": append([]string{".", "internal/work", "adapters/exportfiles", "adapters/httpapi", "adapters/stores"}, domain...),
	"examples":         append([]string{".", "webhook/receiver", "internal/nearest", "adapters/..."}, domain...),
	// The driver of the browser keeps pictures where tests ask for them.
	"examples/internal/browse": {"internal/prove"},
	// The load test starts a PostgreSQL of its own.
	"examples/load": append([]string{".", "webhook/receiver", "adapters/...", "adapters/postgres/pgtest/embedded"}, domain...),
}, append([]string{
	".", "webhook/receiver", "internal/conformance", "internal/prove",
	// Suites of other packages add users, samples and connections.
	"healthdata/healthdatatest", "linking/linkingtest",
}, domain...))

// testsMayImport lists the packages that tests may import in addition.
var testsMayImport = forSuites(map[string][]string{
	".":        append([]string{"webhook/receiver", "adapters/memory", "adapters/sandbox"}, domain...),
	"adapters": {"adapters/memory", "adapters/stores"},
	// Its example keeps users; its suite runs encrypted, too.
	"adapters/memory/memstore": {".", "healthdata", "privacy/personkey"},
	// The trips of requests of the whole service are counted, and queries compared with SQL.
	"adapters/postgres": {"adapters/memory", "adapters/stores", "adapters/service", "adapters/sandbox", "adapters/httpapi", "internal/queryoracle"},
	// Queries are compared with an oracle.
	"aggregate": {"internal/queryoracle", "healthdata", "healthdata/series", "privacy/personkey", "webhook"},

	// The tests read the printed documents with pdftext.
	// What is printed agrees with what the API answers.
	"adapters/labs/pdfdoc": {"adapters/labs/pdftext", "adapters/sandbox", "adapters/httpapi"},
	// The export is tested with the assembly, in a folder.
	"adapters/operations/lake": {"adapters/service", "adapters/sandbox", "adapters/operations/blob"},
	// Pages are tested in a browser.
	"examples": {"adapters/postgres/pgtest", "examples/internal/browse"},
	// What leaves as FHIR is tested with the assembly and the sandbox's laboratory.
	"adapters/fhir": {"adapters/service", "adapters/sandbox"},
	// The assembly is tested with the sandbox's providers and laboratory.
	"adapters/service": {"adapters/sandbox", "adapters/stores"},
}, []string{"adapters/sandbox"}) // some broken stores are made of the sandbox's laboratory

// everyTest lists the packages that any test may import in addition.
var everyTest = append([]string{"internal/eventlog", "internal/prove", "internal/conformance", "adapters/memory", "adapters/memory/memstore",
	"webhook/webhookmock", "labreport/labreportmock", "linking/linkingmock"}, suites...)

// modules lists the third-party modules that a package may import.
var modules = forSuites(map[string][]string{
	".":                    {"github.com/google/uuid", "golang.org/x/text"},
	"internal/fsm":         {},
	"internal/work":        {},
	"internal/prove":       {},
	"internal/archtest":    {},
	"internal/conformance": testModules,

	"store":                   {"github.com/google/uuid"},
	"internal/queryoracle":    testModules,
	"internal/eventlog":       {"github.com/google/uuid"},
	"privacy/accesslog":       {"github.com/google/uuid"},
	"privacy/personkey":       {},
	"privacy/personexport":    {"github.com/google/uuid"},
	"healthdata/series":       {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"healthdata":              {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"healthdata/organisation": {"github.com/google/uuid"},
	"healthdata/teamsettings": {},
	"healthdata/tables":       {"github.com/google/uuid"},
	"linking":                 {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"linking/pull":            {"github.com/google/uuid"},
	"linking/bulk":            {"github.com/google/uuid"},
	"orders/internal/rules":   {},
	"orders/internal/terms":   {},
	"orders/exchange":         {"github.com/google/uuid"},
	"orders/visits":           {"github.com/google/uuid"},
	"orders/catalogue":        {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"orders/people":           {"github.com/google/uuid"},
	"orders/appointment":      {"github.com/google/uuid"},
	"orders/portal":           {"github.com/google/uuid"},
	"orders/critical":         {"github.com/google/uuid"},
	"orders/labresult":        {"github.com/shopspring/decimal"},
	"orders/simulation":       {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"orders/documents":        {"github.com/google/uuid"},
	"orders/idempotency":      {"github.com/google/uuid"},
	"orders":                  {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"labreport":               {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"aggregate":               {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"aggregate/continuous":    {"github.com/google/uuid"},
	"aggregate/parquet":       {"github.com/parquet-go/parquet-go", "github.com/klauspost/compress"},
	"webhook":                 {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/cenkalti/backoff/v4"},
	"webhook/receiver":        {"github.com/google/uuid", "github.com/shopspring/decimal"},
	"webhook/webhooktest":     testModules,
	"aggregate/labhistory":    {"github.com/google/uuid"},
	"labreport/labreporttest": testModules,
	"linking/linkingtest":     testModules,
	"webhook/webhookmock":     {"go.uber.org/mock/gomock"},
	"labreport/labreportmock": {"go.uber.org/mock/gomock"},
	"linking/linkingmock":     {"go.uber.org/mock/gomock"},

	"adapters": {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/klauspost/compress",
		"github.com/muktihari/fit", "github.com/klippa-app/go-pdfium", "github.com/tetratelabs/wazero",
		"golang.org/x/image"},
	// Checks answers against the OpenAPI document in the tests of httpapi.
	"adapters/httpapi/internal/contract": {"github.com/google/uuid", "github.com/shopspring/decimal",
		"github.com/santhosh-tekuri/jsonschema/v6"},
	"adapters/httpapi": {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/klauspost/compress",
		"golang.org/x/time"},
	"adapters/memory":            {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/tidwall/btree"},
	"adapters/postgres":          {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/jackc/pgx/v5"},
	"adapters/operations/mcp":    {"github.com/modelcontextprotocol/go-sdk", "github.com/google/uuid"},
	"adapters/operations/nats":   {"github.com/nats-io/nats.go"},
	"adapters/operations/otel":   {"go.opentelemetry.io/otel", "github.com/jackc/pgx/v5"},
	"adapters/devices/oauthrest": {"golang.org/x/oauth2", "github.com/google/uuid"},
	"adapters/devices/providers": {"golang.org/x/oauth2", "github.com/google/uuid"},
	// The double of Wahoo makes FIT files.
	"adapters/devices/providers/double": {"github.com/muktihari/fit", "github.com/google/uuid"},
	"adapters/labs/pdfdoc": {"codeberg.org/go-pdf/fpdf", "github.com/boombuler/barcode", "github.com/go-fonts/dejavu",
		"golang.org/x/image", "golang.org/x/text"},
	// Character sets of messages.
	"adapters/labs/hl7": {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/mozillazg/go-unidecode", "golang.org/x/text"},
	// Key sets and signed tokens of clients.
	"adapters/fhir":   {"github.com/google/uuid", "github.com/lestrrat-go/jwx/v3"},
	"adapters/sqlite": {"github.com/ncruces/go-sqlite3"},
	// Files in other encodings than UTF-8.
	"adapters/devices/fileimport": {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/klauspost/compress",
		"github.com/muktihari/fit", "golang.org/x/text"},
	"adapters/sqlite/healthconnect": {"github.com/ncruces/go-sqlite3", "github.com/google/uuid"},
	"adapters/operations/blob":      {"filippo.io/age", "github.com/minio/minio-go/v7"},
	"adapters/operations/lake":      {"github.com/google/uuid", "github.com/parquet-go/parquet-go", "golang.org/x/sync"},
	"adapters/exportfiles":          {"github.com/google/uuid", "github.com/parquet-go/parquet-go"},

	// A store of a host's own is shown on bbolt.
	"examples/customstore": {"go.etcd.io/bbolt", "github.com/google/uuid"},

	// Tests make a file of a newer schema, and files that may not grow.
	"examples/server": {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/jackc/pgx/v5", "golang.org/x/net",
		"github.com/peterbourgon/ff/v3", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel", "github.com/minio/minio-go/v7",
		"github.com/ncruces/go-sqlite3", "golang.org/x/sys", "github.com/modelcontextprotocol/go-sdk"},
	"examples/internal/browse": {"github.com/chromedp/chromedp", "github.com/chromedp/cdproto"},
	// The test of the guide calls the tools of assistants.
	"examples/questions": {"github.com/google/uuid", "github.com/modelcontextprotocol/go-sdk"},
	"examples": {"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/jackc/pgx/v5", "golang.org/x/net",
		"github.com/peterbourgon/ff/v3", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel", "github.com/minio/minio-go/v7"},
}, testModules)

// testModules lists the third-party modules that tests may import in addition.
var testModules = []string{
	"github.com/stretchr/testify/require", "go.uber.org/mock", "pgregory.net/rapid",
	"github.com/santhosh-tekuri/jsonschema/v6", "github.com/standard-webhooks/standard-webhooks/libraries/go",
	"github.com/google/uuid", "github.com/shopspring/decimal", "github.com/jackc/pgx/v5",
	"github.com/nats-io/nats-server/v2/server", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf", "github.com/johannesboyne/gofakes3",
}

// std restricts packages of the standard library, and the packages below them, to the
// importers for which the function returns true.
var std = map[string]func(pkg string) bool{
	"testing": func(pkg string) bool {
		return slices.Contains(suites, pkg) || pkg == "internal/conformance" || pkg == "internal/queryoracle" || pkg == "adapters/postgres/pgtest" || pkg == "examples/internal/browse"
	},
	"net/http":       func(pkg string) bool { return !inDomain(pkg) || within(pkg, "webhook") },
	"database/sql":   func(pkg string) bool { return !inDomain(pkg) },
	"os/exec":        func(pkg string) bool { return !inDomain(pkg) },
	"plugin":         func(string) bool { return false },
	"net/http/pprof": func(pkg string) bool { return within(pkg, "examples") }, // registers handlers in the host's default mux
	"expvar":         func(pkg string) bool { return within(pkg, "examples") }, // registers handlers in the host's default mux
}

// row returns the entry of table for pkg, or for the nearest folder above it.
func row(table map[string][]string, pkg string) (allowed []string, ok bool) {
	for p := pkg; ; p = path.Dir(p) {
		if allowed, ok = table[p]; ok || p == "." {
			return allowed, ok && (p != "." || pkg == ".")
		}
	}
}

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func inDomain(pkg string) bool {
	return pkg == "." || within(pkg, "internal/fsm") || within(pkg, "internal/work") ||
		slices.ContainsFunc(domain, func(d string) bool { return within(pkg, d) })
}

// groups lists the folders of adapters that are modules with several adapters.
var groups = []string{"devices", "labs", "operations"}

// home returns the folder whose packages may import each other: the folder of an adapter or
// example, or the package itself.
func home(pkg string) string {
	parts := strings.Split(pkg, "/")
	if len(parts) > 2 && slices.Contains(groups, parts[1]) {
		return strings.Join(parts[:3], "/")
	}
	if (parts[0] == "adapters" || parts[0] == "examples" || parts[0] == "internal") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return pkg
}

// permits reports whether pkg, or its tests, may import our package imp.
func permits(pkg, imp string, test bool) bool {
	// Packages below the same home.
	if within(imp, home(pkg)) && home(pkg) != "." && (strings.HasPrefix(pkg, "adapters/") ||
		strings.HasPrefix(pkg, "examples/") || strings.HasPrefix(imp, home(pkg)+"/internal/") || test && imp == pkg) {
		return true
	}
	allowed, _ := row(mayImport, pkg)
	if test {
		more, _ := row(testsMayImport, pkg)
		allowed = slices.Concat(allowed, more, everyTest)
		if imp == pkg {
			return true
		}
	}
	return matches(allowed, imp)
}

func matches(allowed []string, imp string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		if folder, all := strings.CutSuffix(a, "/..."); all {
			return within(imp, folder) && !strings.Contains(imp, "/internal/")
		}
		return imp == a
	})
}
