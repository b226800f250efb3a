package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/peterbourgon/ff/v3"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
)

// config has the values of the flags, and what is read from the files that they name.
type config struct {
	version, printConfig bool
	addr                 string
	metricsAddr          string
	otlpEndpoint         string
	publicURL            string
	tlsCert              string
	tlsKey               string
	proxies              []netip.Prefix
	invented             []string
	labCatalogue         string
	apiKey               string
	apiKeyMade           bool // apiKey was derived from the secret, as -api-key is not set
	managementKey        string
	teamKeyTexts         []string // parsed after the flags: package flag would quote an invalid key
	teamKeys             []teamKey
	smartClients         string
	providers            string
	connectors           string
	clientsFile          string
	doubles              bool
	served               []connected // providers with a running double (test server)
	dataDir              string
	freshDir             bool // dataDir is temporary and removed when the process ends
	databaseURL          string
	store                string
	secretFile           string
	sealingFile          string
	signingFile          string
	keysURL              string
	encryptSamples       bool
	ehrPipelines         bool
	shards               int
	sealer               healthlab.Sealer // encrypts keys of persons and secrets; from -sealing-keys and -secret-file
	signing              master           // secret from which signing keys are derived; from -signing-key or -secret-file
	webhookURL           string
	webhookSecret        string
	proxyURL             string
	webhookProxy         *url.URL
	lease                time.Duration
	grantLife            time.Duration
	sandboxSpeed         float64
	sandboxUsers         int
	hl7                  hl7Lab
	importPath           string
	importUser           string
	importZone           string
	importDateOrder      string
	importAggregation    string
	filesPath            string
	lake                 string
	lakeKey              string
	lakeEvery            time.Duration
	reportWorkers        int
	paper                orders.Paper
	portalURL            string
	fonts                []string
	environment          healthlab.Environment
	tour                 bool
	compat               bool
	compatService        string
	keyHeader            string
	linkTokenHeader      string
	teamRate             float64
	deletionGrace        time.Duration
	addressRate          float64
	ignoreUnknown        bool
	invite               bool
	brand                string
	brandColor           string
	log                  *slog.Logger
	logPath              string
	logFile              *os.File // the open file logPath; nil without one
}

// flagGroup is a group of related flags, which the help prints together.
type flagGroup struct {
	name, about, example string
	add                  func(*flag.FlagSet)
}

func (c *config) flagGroups() []flagGroup {
	return []flagGroup{
		{"start", "what the program does first", "-tour", c.startFlags},
		{"network", "where it listens and how it is reached", "-addr 0.0.0.0:8443 -tls-cert cert.pem -tls-key key.pem -public-url https://api.example.com:8443", c.networkFlags},
		{"storage", "where everything is kept", "-data /var/lib/healthlab", c.storageFlags},
		{"secrets", "what encrypts and signs", "-data /var/lib/healthlab -secret-file /etc/healthlab/secret", c.secretFlags},
		{"access", "keys that open the API and the management", `-management-key "$MANAGEMENT_KEY"`, c.keyFlags},
		{"events", "the receiver of events", "-webhook-url https://hooks.example.com/health", c.eventFlags},
		{"sources", "providers that people connect", "-connectors connectors", c.providerFlags},
		{"orders", "the laboratory, its catalogue and documents", "-sandbox-speed 8640", c.orderFlags},
		{"link", "the pages on which people connect sources", `-brand "Riverside Practice" -brand-color 1d6fa5`, c.linkFlags},
		{"api", "shapes and limits of the API", "-team-rate 50", c.apiFlags},
		{"import", "files that are read at the start", "-import export.zip -import-user member-42", c.importFlags},
		{"lake", "exports of all teams as Parquet files", "-lake s3://storage.example.com/lake/health -lake-credentials FILE", c.lakeFlags},
	}
}

// serverFlags is the name of the server's flag set. The help of commands with flags of their own has another name.
const serverFlags = "server"

// flags reads the settings from the command line, the environment and the file of -config, in this order of precedence.
// It also reads the secrets and opens the log.
//
// Set secrets in the environment or the file, because other users of the machine can see the arguments of a process.
func flags(args []string, stderr io.Writer) (config, *flag.FlagSet, error) {
	output := &logOutput{to: stderr}
	c, f, err := settings(args, slog.New(slog.NewTextHandler(output, nil)))
	if err == nil && !c.version && !c.printConfig {
		if err = c.readSecrets(); err == nil {
			err = c.openLog(output)
		}
	}
	if err != nil {
		return config{}, nil, err
	}
	return c, f, nil
}

// settings reads and checks all settings except the secrets. It creates no file. It returns flag.ErrHelp if the
// arguments ask for help.
func settings(args []string, log *slog.Logger) (config, *flag.FlagSet, error) {
	c := config{log: log}
	f := flag.NewFlagSet(serverFlags, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	for _, group := range c.flagGroups() {
		group.add(f)
	}
	help, err := checkArguments(args, f)
	if help {
		return config{}, nil, flag.ErrHelp
	}
	if err != nil {
		return config{}, nil, err
	}
	if err := checkVariables(os.Environ(), f); err != nil {
		return config{}, nil, err
	}
	if err := ff.Parse(f, args, ff.WithEnvVarPrefix(variablePrefix), ff.WithConfigFileFlag("config"), ff.WithConfigFileParser(configFile(f))); err != nil {
		return config{}, nil, err
	}
	// checkEnvironment sets the environment, sandbox or production, on which the other checks depend.
	for _, check := range []func() error{c.checkEnvironment, c.checkStore, c.checkAPI, c.checkPortal, c.checkNetwork, c.checkOrders, c.checkEvents, c.readTeamKeys, c.checkManagementKeys, c.placeSecrets} {
		if err := check(); err != nil {
			return config{}, nil, err
		}
	}
	return c, f, nil
}

// logName is the file in the data folder to which the server logs during a tour (-tour).
const logName = "server.log"

// logOutput is a log destination that can be changed before other goroutines log.
type logOutput struct{ to io.Writer }

// Write writes to the present destination.
func (o *logOutput) Write(b []byte) (int, error) { return o.to.Write(b) }

// openLog sends output to the file of -log or, during a tour with a data folder, to the file logName. Without either,
// it changes nothing.
func (c *config) openLog(output *logOutput) (err error) {
	if c.logPath == "" && c.tour && c.dataDir != "" {
		c.logPath = filepath.Join(c.dataDir, logName)
	}
	if c.logPath == "" {
		return nil
	}
	if c.logFile, err = os.OpenFile(c.logPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("-log: %w", err)
	}
	output.to = c.logFile
	return nil
}

func (c *config) closeLog() error {
	if c.logFile == nil {
		return nil
	}
	return c.logFile.Close()
}

// configFile returns the parser of the file of -config. It refuses a line that names no flag, and suggests the most
// similar flag.
func configFile(f *flag.FlagSet) ff.ConfigFileParser {
	return func(r io.Reader, set func(name, value string) error) error {
		return ff.PlainParser(r, func(name, value string) error {
			if f.Lookup(name) == nil {
				return fmt.Errorf("-config: %s is no setting; the nearest one is %s", name, nearestOf(name, flagNames(f)))
			}
			if err := checkValue(f.Lookup(name), value); err != nil {
				return fmt.Errorf("-config: %w", err)
			}
			return set(name, value)
		})
	}
}

func (c *config) startFlags(f *flag.FlagSet) {
	f.StringVar((*string)(&c.environment), "env", string(healthlab.Sandbox), "sandbox or production")
	f.BoolVar(&c.tour, "tour", false, "play the main job once, then serve")
	f.StringVar(&c.logPath, "log", "", "`file` to which the log is appended (default: standard error, with -tour "+logName+" in the folder of the data)")
	f.BoolVar(&c.invite, "invite", false, "make a user and print the address of its link pages, to open in a browser")
	f.BoolVar(&c.version, "version", false, "print the version and stop")
	f.BoolVar(&c.printConfig, "print-config", false, "print the settings that hold, without secrets, and stop")
	f.String("config", "", "`file` with settings: a line for each, with the name of a flag, a space and the value")
}

func (c *config) networkFlags(f *flag.FlagSet) {
	f.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`address` to listen on; port 0 takes a free one")
	f.StringVar(&c.publicURL, "public-url", "", "`URL` under which callers and browsers reach the service, such as https://api.example.com: for links, callbacks and cookies (default: the address that it listens on)")
	f.StringVar(&c.tlsCert, "tls-cert", "", "`file` with the certificate and its chain (PEM), to answer over TLS")
	f.StringVar(&c.tlsKey, "tls-key", "", "`file` with the key of the certificate (PEM)")
	f.Func("trusted-proxy", "`addresses` of a proxy in front of the service, such as 10.0.0.0/8, whose X-Forwarded-For is believed; may be repeated", func(text string) error {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return errors.New("must be an address range such as 10.0.0.0/8")
		}
		c.proxies = append(c.proxies, prefix)
		return nil
	})
	f.StringVar(&c.otlpEndpoint, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector that takes traces over OTLP (HTTP), such as http://127.0.0.1:4318; the variables OTEL_… adjust the export (default: OTEL_EXPORTER_OTLP_ENDPOINT; without both, no traces)")
	f.StringVar(&c.metricsAddr, "metrics-addr", "", "`address` for /metrics, /healthz and /readyz apart from the API (default: in a sandbox they are beside the API; in production there is no /metrics)")
}

func (c *config) storageFlags(f *flag.FlagSet) {
	f.StringVar(&c.dataDir, "data", "", "`folder` in which everything is kept, made if it is not there: "+dataFile+" and "+keysFile+" (the keys of persons), "+filesDir+" and "+secretName+"; of one process at a time (default in a sandbox: "+defaultDataDir+", with -tour one of its own that is removed at the end; production has no default)")
	f.StringVar(&c.databaseURL, "database-url", "", "postgres://… of a PostgreSQL `server` in which everything is kept, in place of -data, for several processes")
	f.IntVar(&c.shards, "distribute", 0, "spread the data of users over the machines of a Citus cluster, whose coordinator -database-url names, in so many `shards`, if it is not (docs/scaling.md; 0: no)")
	f.StringVar(&c.store, "store", "", "`memory`: everything is kept in memory, until the process ends, in place of -data")
	f.StringVar(&c.filesPath, "files", "", "`folder` that keeps uploaded lab reports and documents of orders, encrypted (default: files in the folder of -data; with -store, memory)")
	f.BoolVar(&c.ehrPipelines, "ehr-pipelines", false, "push what teams have of their people to FHIR servers that they name; all processes on one database say the same")
	f.IntVar(&c.reportWorkers, "report-workers", 1, "`number` of lab reports that are read at a time")
}

func (c *config) secretFlags(f *flag.FlagSet) {
	f.StringVar(&c.secretFile, "secret-file", "", "`file` with the secret that the parts are made of that have no file of their own: -sealing-keys, -signing-key and -api-key; made if it is not there; keep it apart from the data; all processes on one database need the same (default: secret in the folder of -data; without a folder one that ends with the process)")
	f.StringVar(&c.signingFile, "signing-key", "", "`file` with 32 bytes in base64 that sign link tokens, tokens of FHIR, links and the access log, and make the pseudonyms of -lake; made if it is not there (default: -secret-file)")
	f.StringVar(&c.sealingFile, "sealing-keys", "", "`file` with the keys that seal: a line each with a name, a space and 32 bytes in base64, the current one first; without it, a key of -secret-file, which opens older data where both are given")
	f.StringVar(&c.keysURL, "keys-url", "", "postgres://… of another database for the keys of persons (default: the schema healthlab_keys of -database-url)")
	f.BoolVar(&c.encryptSamples, "encrypt-samples", false, "encrypt samples with the keys of persons as the rest is, which takes processor time for each upload and read. Samples in both forms are read, and folding writes them in the form of this flag")
}

func (c *config) importFlags(f *flag.FlagSet) {
	f.StringVar(&c.importPath, "import", "", "`file or folder` with recordings (FIT, GPX, TCX, or a ZIP archive of them), a phone's export.xml, the export of an account or Observations of FHIR to read at the start")
	f.StringVar(&c.importUser, "import-user", "import", "client_user_id of the `user` that the import belongs to")
	f.StringVar(&c.importZone, "import-zone", "", "IANA `zone` that the person of the import was in, such as Europe/Berlin, for files with local times (default: none, and such files are refused or read as UTC)")
	f.StringVar(&c.importDateOrder, "import-date-order", "", "`order` of day and month in files whose dates do not tell: day_first or month_first (default: none, and such files are refused)")
	f.StringVar(&c.importAggregation, "import-aggregation", "", "`length` of the totals of files that do not tell it: minutes, hours or days (default: none, and such totals are left out)")
}

func (c *config) lakeFlags(f *flag.FlagSet) {
	f.StringVar(&c.lake, "lake", "", "`folder or bucket` that all teams are exported to as Parquet files with pseudonyms (docs/lake.md): a folder, or s3://HOST/BUCKET/PREFIX, of one process on a database (default: no export)")
	f.StringVar(&c.lakeKey, "lake-credentials", "", "`file` with the access key and the secret key of the bucket of -lake, a line each")
	f.DurationVar(&c.lakeEvery, "lake-every", time.Hour, "time from the start of one export to the next")
}

func (c *config) keyFlags(f *flag.FlagSet) {
	f.StringVar(&c.apiKey, "api-key", "", "the team's API `key` (default: one is made of the secret and printed)")
	f.StringVar(&c.managementKey, "management-key", "", "`key` that opens the management of the organisation: its teams, their API keys, settings, OAuth credentials, webhook endpoints and continuous queries (default: closed)")
	f.Func("team-management-key", "`KEY=TEAM,TEAM=ROLE`: a key that opens the management of these teams of the organisation alone, as admin (default), developer, viewer, reviewer or auditor; may be repeated", func(text string) error {
		c.teamKeyTexts = append(c.teamKeyTexts, text)
		return nil
	})
	f.StringVar(&c.smartClients, "smart-clients", "", "JSON `file` with clients that read FHIR with tokens of SMART backend services, beside API keys (docs/fhir.md); it is read again when it changes")
}

func (c *config) providerFlags(f *flag.FlagSet) {
	f.StringVar(&c.providers, "providers", "", "JSON `file` with the providers (default: manual data and the stores of phones; in a sandbox thirty-six invented ones, too)")
	f.StringVar(&c.connectors, "connectors", "", "`folder` with providers that people can connect: NAME.json says how one is reached (docs/providers.md), NAME.client has our id there and our secret, a line each; with it, people can connect their own Nightscout, too")
	f.StringVar(&c.clientsFile, "providers-config", "", "JSON `file` with our client id and secret at each provider of docs/providers that people can connect (docs/providers/README.md)")
	f.BoolVar(&c.doubles, "doubles", false, "offer doubles of real providers (docs/providers), which speak their APIs and have made-up people; in a sandbox only")
	f.DurationVar(&c.grantLife, "sandbox-grant-life", time.Hour, "how long a grant of a sandbox's provider works before it has to be renewed")
	f.IntVar(&c.sandboxUsers, "sandbox-users", healthdata.SandboxUsers, "`number` of users that a team of a sandbox may have")
}

func (c *config) eventFlags(f *flag.FlagSet) {
	f.StringVar(&c.webhookURL, "webhook-url", "", "`URL` that events are sent to")
	f.StringVar(&c.webhookSecret, "webhook-secret", "", "`secret` that events are signed with, whsec_… (default: one is made and printed)")
	f.StringVar(&c.proxyURL, "webhook-proxy", "", "`URL` of an egress proxy that events are sent through; it must refuse private addresses itself")
	f.DurationVar(&c.lease, "lease", time.Minute, "how long a delivery or a pull is one process's to make before another one takes it over; half of it is the most that a provider may take, and a receiver, up to 15 s")
}

func (c *config) orderFlags(f *flag.FlagSet) {
	f.Float64Var(&c.sandboxSpeed, "sandbox-speed", 0, "how many `times` as fast as at a laboratory the orders of a sandbox move by themselves: at 1 each step takes a day, at 8640 ten seconds; at 0 they wait to be simulated")
	f.StringVar(&c.hl7.target, "lab-hl7", "", "`address or folder` of a laboratory that speaks HL7, in place of the sandbox's: host:port takes orders over MLLP; a folder gets them in orders and is read in results (docs/hl7-laboratory.md)")
	f.StringVar(&c.hl7.listen, "lab-hl7-listen", "127.0.0.1:2576", "`address` to listen on for the results of the laboratory over MLLP")
	f.StringVar(&c.labCatalogue, "lab-catalogue", "", "JSON `file` with the laboratories, markers and lab tests that can be ordered (default in a sandbox: invented ones)")
	f.Func("invented", "`part` of the sandbox that production uses: lab, registry or messenger; may be repeated", func(part string) error {
		if !slices.Contains([]string{inventedLab, inventedRegistry, inventedMessenger}, part) {
			return errors.New("must be lab, registry or messenger")
		}
		c.invented = append(c.invented, part)
		return nil
	})
	f.StringVar((*string)(&c.paper), "paper", string(orders.Letter), "what documents are printed on: letter or a4")
	f.Func("font", "TrueType `file` for letters of documents that DejaVu Sans lacks, such as Chinese; may be repeated", func(name string) error {
		c.fonts = append(c.fonts, name)
		return nil
	})
	f.StringVar(&c.portalURL, "portal-url", "", "`URL` of the portal where patients see their orders, which this program does not serve; links to it are signed with what the secret makes for \"portal links\" (default: there is no portal)")
}

func (c *config) linkFlags(f *flag.FlagSet) {
	f.StringVar(&c.brand, "brand", "Example Clinic", "`name` that the link pages show")
	f.StringVar(&c.brandColor, "brand-color", "", "`colour` of the link pages, as six hex digits")
}

// checkEnvironment checks -env, and refuses flags that are only valid in the other environment (sandbox or
// production).
func (c *config) checkEnvironment() error {
	if c.environment.Check() != nil {
		return errors.New("-env must be sandbox or production")
	}
	if c.tour && c.environment != healthlab.Sandbox {
		return errors.New("-tour can be used only with -env sandbox, because it invents data")
	}
	if c.doubles && c.environment != healthlab.Sandbox {
		return errors.New("-doubles can be used only with -env sandbox, because the doubles have invented people")
	}
	if c.apiKey != "" {
		if err := httpapi.CheckKey(c.apiKey, c.environment, region); err != nil {
			return fmt.Errorf("-api-key: %w", err)
		}
	}
	if c.sandboxSpeed < 0 {
		return errors.New("-sandbox-speed must be 0 or more")
	}
	if c.sandboxUsers < 1 {
		return errors.New("-sandbox-users must be 1 or more")
	}
	return nil
}

// checkStore checks that the flags name at most one store, and sets the default. Production has no default, so a store
// in memory, whose data is lost with the process, must be named by -store.
func (c *config) checkStore() error {
	if c.store != "" && c.store != storeMemory {
		return errors.New("-store must be memory")
	}
	var named []string
	for _, one := range []struct {
		flag string
		set  bool
	}{{"-data", c.dataDir != ""}, {"-database-url", c.databaseURL != ""}, {"-store", c.store != ""}} {
		if one.set {
			named = append(named, one.flag)
		}
	}
	switch {
	case len(named) > 1:
		return fmt.Errorf("only one of %s can be given: each chooses a store", strings.Join(named, " and "))
	case len(named) == 1:
		return nil
	case c.environment == healthlab.Production:
		return errors.New("-env production needs a store: -data, -database-url, or -store memory for one that ends with the process")
	case c.tour:
		c.freshDir = true
		return nil
	}
	c.dataDir = defaultDataDir
	return nil
}

const (
	// storeMemory is the value of -store with which all data is in memory.
	storeMemory = "memory"
	// defaultDataDir is the folder, in the working directory, for a sandbox's data.
	defaultDataDir = "healthlab-data"
)

// managementKeyLength is the minimum number of characters of a management key in production.
const managementKeyLength = 32

// checkManagementKeys refuses management keys that are too short for production.
func (c *config) checkManagementKeys() error {
	if c.environment != healthlab.Production {
		return nil
	}
	if c.managementKey != "" && len(c.managementKey) < managementKeyLength {
		return fmt.Errorf("-management-key must have %d characters or more in production", managementKeyLength)
	}
	for _, k := range c.teamKeys {
		if len(k.key) < managementKeyLength {
			return fmt.Errorf("the key of -team-management-key must have %d characters or more in production", managementKeyLength)
		}
	}
	return nil
}

// checkOrders checks the flags of lab orders.
func (c *config) checkOrders() error {
	if c.paper != orders.Letter && c.paper != orders.A4 {
		return errors.New("-paper must be letter or a4")
	}
	if c.environment == healthlab.Production && c.hl7.target != "" && c.labCatalogue == "" {
		return errors.New("-lab-hl7 needs -lab-catalogue in production, because no laboratory has the invented tests of the default catalogue")
	}
	return nil
}

// checkEvents checks the flags of webhooks.
func (c *config) checkEvents() error {
	if c.lease < time.Second {
		return errors.New("-lease must be a second or more")
	}
	if c.webhookSecret != "" && c.webhookURL == "" {
		return errors.New("-webhook-secret needs -webhook-url")
	}
	if c.proxyURL == "" {
		return nil
	}
	u, err := url.Parse(c.proxyURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("-webhook-proxy must be an http:// or https:// URL") // err would quote it with its password
	}
	c.webhookProxy = u
	return nil
}

// apiFlags declares the flags of the API: names of headers, compatibility and limits.
func (c *config) apiFlags(f *flag.FlagSet) {
	f.BoolVar(&c.compat, "compat", false, "give answers in the shapes of existing clients where they differ from the contract (docs/compat.md)")
	f.StringVar(&c.compatService, "compat-service", "", "with -compat, the `word` of those clients for service in appointment_with_service")
	f.StringVar(&c.keyHeader, "api-key-header", "", "`name` of the header with the API key (default x-service-api-key)")
	f.StringVar(&c.linkTokenHeader, "link-token-header", "", "`name` of the header with a link token (default x-service-link-token)")
	f.Float64Var(&c.teamRate, "team-rate", -1, "requests a second that a team may make of this process; 0 is no limit (default: 200 in production, no limit in a sandbox)")
	f.Float64Var(&c.addressRate, "address-rate", -1, "requests a second that an address without a key may make of this process; 0 is no limit (default: 20 in production, no limit in a sandbox)")
	f.DurationVar(&c.deletionGrace, "deletion-grace", healthdata.GracePeriod, "how long the deletion of a user can be undone; 0: not at all")
	f.BoolVar(&c.ignoreUnknown, "ignore-unknown", false, "pass over unknown keys in bodies and unknown parameters, which are refused otherwise")
}

// checkAPI checks the flags of the API, and sets the defaults of the rate limits.
func (c *config) checkAPI() error {
	for _, limit := range []struct {
		rate     *float64
		standard float64
	}{{&c.teamRate, 200}, {&c.addressRate, 20}} {
		switch {
		case *limit.rate >= 0:
		case c.environment == healthlab.Production:
			*limit.rate = limit.standard
		default:
			*limit.rate = 0
		}
	}
	if c.deletionGrace < 0 {
		return errors.New("-deletion-grace must be 0 or more")
	}
	if c.deletionGrace == 0 {
		c.deletionGrace = -1 // 0 would mean the default; a negative period means none
	}
	for _, header := range []struct{ flag, name string }{{"api-key-header", c.keyHeader}, {"link-token-header", c.linkTokenHeader}} {
		if strings.Trim(header.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return fmt.Errorf("-%s must consist of letters, digits, hyphens, underscores and dots", header.flag)
		}
	}
	if c.compatService != "" && !c.compat {
		return errors.New("-compat-service needs -compat")
	}
	return nil
}

// checkPortal checks -portal-url, the address of the patient portal, if it is set.
func (c *config) checkPortal() error {
	if u, err := url.Parse(c.portalURL); c.portalURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("-portal-url must be an http:// or https:// URL") // err would quote it
	}
	c.portalURL = strings.TrimSuffix(c.portalURL, "/")
	return nil
}

func (c *config) uses(part string) bool {
	return c.environment == healthlab.Sandbox || slices.Contains(c.invented, part)
}

// checkNetwork checks the flags with the service's public URL, its trace collector and its TLS certificate.
func (c *config) checkNetwork() error {
	if u, err := url.Parse(c.publicURL); c.publicURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "") {
		return errors.New("-public-url must be http:// or https:// and a host")
	}
	c.publicURL = strings.TrimRight(c.publicURL, "/")
	if u, err := url.Parse(c.otlpEndpoint); c.otlpEndpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("-otlp-endpoint must be a http:// or https:// URL") // err would quote it
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return errors.New("-tls-cert and -tls-key must be given together")
	}
	return nil
}

// readSecrets reads or creates the sealing keys, the signing key and the API key. Those that no flag sets are
// derived from the secret in -secret-file.
func (c *config) readSecrets() error {
	if err := c.makeDataDir(); err != nil {
		return fmt.Errorf("-data: %w", err)
	}
	secret, err := newMaster(c.secretFile)
	if err != nil {
		return fmt.Errorf("-secret-file: %w", err)
	}
	c.signing = secret
	if c.signingFile != "" {
		if c.signing, err = newMaster(c.signingFile); err != nil {
			return fmt.Errorf("-signing-key: %w", err)
		}
	}
	if c.sealer, err = secret.sealer(c.sealingFile, c.secretFile != ""); err != nil || c.apiKey != "" {
		return err
	}
	random, err := secret.reader("API key")
	if err != nil {
		return err
	}
	c.apiKeyMade = true
	c.apiKey, _, err = httpapi.NewKey(random, c.environment, region)
	return err
}

// placeSecrets sets the default paths of the secret file and of the folder for files in the data folder, and checks the
// flags that a database needs.
func (c *config) placeSecrets() error {
	apart := c.sealingFile != "" && c.signingFile != "" && c.apiKey != "" // no secret file is needed
	if c.dataDir != "" {
		c.filesPath = cmp.Or(c.filesPath, filepath.Join(c.dataDir, filesDir))
		if c.secretFile == "" && !apart {
			c.secretFile = filepath.Join(c.dataDir, secretName)
			if c.environment == healthlab.Production {
				c.log.Warn("the secret is kept beside the data: who has a copy of the folder can read it; -secret-file keeps it elsewhere", "file", c.secretFile)
			}
		}
	}
	switch {
	case c.databaseURL != "" && c.secretFile == "" && !apart:
		return errors.New("-database-url needs -secret-file, or all of -sealing-keys, -signing-key and -api-key: the next process must be able to decrypt what this one stores")
	case c.databaseURL != "" && c.filesPath == "":
		return errors.New("-database-url needs -files: a folder that all processes on the database can read and write")
	case c.shards < 0:
		return errors.New("-distribute must be 0 or more")
	case c.shards > 0 && c.databaseURL == "":
		return errors.New("-distribute needs -database-url")
	}
	return nil
}

// makeDataDir creates the data folder, which only its owner can read, if data is stored in one. For a tour without a
// named store, it creates a temporary folder.
func (c *config) makeDataDir() error {
	if c.freshDir {
		var err error
		if c.dataDir, err = os.MkdirTemp("", "healthlab-tour-"); err != nil {
			return err
		}
		return c.placeSecrets()
	}
	if c.dataDir == "" {
		return nil
	}
	return os.MkdirAll(c.dataDir, 0o700)
}

// printSettings prints each setting as a line in the form of the file of -config. It does not print secrets, nor
// database addresses that are not URLs, but says whether they are set.
func printSettings(out io.Writer, f *flag.FlagSet) error {
	secret := []string{"api-key", "management-key", "team-management-key", "webhook-secret"}
	address := []string{"database-url", "keys-url"}
	var err error
	f.VisitAll(func(one *flag.Flag) {
		value := one.Value.String()
		switch {
		case one.Name == "print-config" || one.Name == "version" || one.Name == "config":
			return
		case slices.Contains(secret, one.Name) && value != "":
			value = "(set)"
		case strings.Contains(value, "://"):
			value = redacted(value)
		case slices.Contains(address, one.Name) && value != "":
			value = "(set)" // an address such as host=db password=…
		}
		_, failed := fmt.Fprintln(out, strings.TrimSpace(one.Name+" "+value))
		err = errors.Join(err, failed)
	})
	return err
}

// redacted returns a URL without the passwords in its user part and its query.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(set)"
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(name, "password") { // also sslpassword
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}
