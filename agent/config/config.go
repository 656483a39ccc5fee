package config

import (
	"time"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
	sls "github.com/corpus-agent/corpus-agent/state/value"
)

// Config is the configuration, with defaults for settings that no source sets.
type Config struct {
	File File // the file from which the settings were read

	Store    string
	Service  string
	Mirrors  []string // of Store
	Instance string
	Region   string
	Node     string

	Convention      string
	Metadata        bool
	MetadataV1      bool
	BaseChannel     string
	ServiceChannel  string
	Engine          string
	EngineCommand   []string
	EventCommand    []string
	Top             string    // which top files are used: first or merge
	ExtPillar       *sls.List // sources of pillar data, in the form of a Salt minion; nil if there are none
	ExtPillarFirst  bool      // the pillar's files have priority over them
	Failhard        bool
	StrictArguments bool
	StateOutput     string
	StateVerbose    bool

	ConvergeTimeout time.Duration
	StopTimeout     time.Duration // of a running state
	HookTimeout     time.Duration
	FetchTimeout    time.Duration
	FetchRetry      time.Duration // 0 for the default, which depends on mirrors
	FetchRate       int64         // bytes per second
	FetchHostRate   int64         // of one store
	FetchSlowest    int64         // minimum bytes per second of a source of a state; 0 for any
	FetchPrivate    bool          // a public server may redirect sources of states to a private address
	UnpackBytes     int64
	UnpackFiles     int
	UnpackDepth     int
	UnpackRatio     int

	Health        recipe.Health
	Notify        Notify
	Metrics       string // file for the textfile collector; "" for none
	UploadReports bool
	Heartbeat     time.Duration // how often a host that uploads reports renews its record

	Dev           []string // instances that are dev environments
	Prod          []string // instances that are prod environments
	AllowUnsigned []string // projects
	ELB           ELB

	UndoLimit     int64 // maximum bytes of the journal; 0 for no journal
	UndoFileLimit int64 // maximum bytes of a file that it keeps

	ArchiveRequired bool
	KeepArchives    int
	KeepReleases    int
	KeepFailed      int
	KeepReports     int
}

// Notify configures who is notified about a run.
type Notify struct {
	On      []string // events
	Journal bool

	WebhookURL     string
	WebhookSecret  string // file of the secret
	WebhookTimeout time.Duration
	WebhookTries   int

	MailTo   []string
	MailFrom string
	Sendmail string

	Command []string
}

// ELB names the load balancers of this host.
type ELB struct {
	Names        []string // classic load balancers
	TargetGroups []string // ARNs
	Deploy       bool     // whether the host leaves them during a deploy
	Timeout      time.Duration
}

// Sources describes the sources of settings.
type Sources struct {
	File     string // may be missing unless Required is set
	Required bool   // the file was named by the user, so it must exist
	Copy     string // copy of the last valid file, used if the file is damaged; "" for none
	// a file that the user may not read counts as missing, and File.Denied is set; with Required it is an error
	Optional bool
	Getenv   func(string) string // the environment; nil for none
	Flags    map[string]string   // given flags, by key
}

// Load reads and checks all sources. Its error is a diag.List with all problems.
func Load(s Sources) (Config, error) {
	v := viper.New()
	for _, k := range Keys() {
		v.SetDefault(k.Name, k.Default)
	}
	var problems diag.List
	file, data := loadFile(v, s, &problems)
	if s.Getenv != nil {
		for _, k := range Keys() {
			if text := s.Getenv(k.Env()); text != "" {
				override(v, k, text, diag.Pos{File: "environment variable " + k.Env()}, &problems)
			}
		}
	}
	for name, text := range s.Flags {
		if k, ok := find(name); ok {
			override(v, k, text, diag.Pos{File: "flag --" + name}, &problems)
		}
	}
	if err := problems.Err(); err != nil {
		return Config{}, err
	}
	c := read(v)
	if c.Top == "merge" && c.Engine != "native" {
		problems.Add(diag.Pos{File: s.File}, "top is merge, and the engine %s reads one top file alone",
			c.Engine).WithHint(diag.Config, "leave out `top`, or set `engine: native`")
		return Config{}, problems.Err()
	}
	c.ExtPillar = pillarSources(data, s.File)
	if c.ExtPillar != nil && c.Engine != "native" {
		problems.Add(s.at(keyExtPillar), "ext_pillar is for the native engine, and engine is %s", c.Engine).
			WithHint(diag.Config, "leave out ext_pillar, or set `engine: native`")
		return Config{}, problems.Err()
	}
	if h := c.Health; h.Grace >= h.Deadline {
		problems.Add(s.at("health.grace"),
			"health.grace is %s, and health.deadline, which includes it, is %s: no release becomes healthy",
			recipe.Short(h.Grace), recipe.Short(h.Deadline)).
			WithHint(diag.Config, "give health.deadline more time than health.grace")
		return Config{}, problems.Err()
	}
	c.File = file
	c.Health.Probes = probes(data, s.File)
	return c, nil
}

// probes returns the list of probes, which is not a plain setting, from a verified file.
func probes(data []byte, file string) []recipe.Probe {
	var root struct {
		Health struct{ Probes yaml.Node }
	}
	if yaml.Unmarshal(data, &root) != nil || root.Health.Probes.IsZero() {
		return nil
	}
	list, _ := recipe.ParseProbes(&root.Health.Probes, file)
	return list
}

func loadFile(v *viper.Viper, s Sources, problems *diag.List) (File, []byte) {
	file, data, found := source(s)
	*problems = append(*problems, found...)
	if len(found) > 0 || data == nil {
		return file, nil
	}
	if err := merge(v, data); err != nil {
		problems.AddError(diag.Pos{File: s.File}, err)
	}
	return file, data
}

// merge adds the settings of a file to v. If viper read the file itself, the program would link viper's parsers of TOML
// and YAML, which are larger than viper.
func merge(v *viper.Viper, data []byte) error {
	var settings map[string]any
	if err := yaml.Unmarshal(data, &settings); err != nil {
		return err
	}
	return v.MergeConfigMap(settings)
}

func override(v *viper.Viper, k Key, text string, at diag.Pos, problems *diag.List) {
	if problem := k.check(text); problem != "" {
		problems.Add(at, "%s", problem)
		return
	}
	v.Set(k.Name, text)
}

func read(v *viper.Viper) Config {
	return Config{
		Store: v.GetString("store"), Mirrors: v.GetStringSlice("mirrors"),
		Service: v.GetString("service"), Instance: v.GetString("instance"),
		Region: v.GetString("region"), Node: v.GetString("node"),
		Convention: v.GetString("hostname.convention"), Metadata: v.GetBool("metadata.enabled"),
		MetadataV1:  v.GetBool("metadata.v1"),
		BaseChannel: v.GetString("channels.base"), ServiceChannel: v.GetString("channels.service"),
		Engine: v.GetString("engine"), EngineCommand: v.GetStringSlice("engine_command"),
		EventCommand: v.GetStringSlice("event_command"), Top: v.GetString("top"),
		ExtPillarFirst: v.GetBool("ext_pillar_first"),
		Failhard:       v.GetBool("converge.failhard"), StrictArguments: v.GetBool("converge.strict_arguments"),
		StateOutput: v.GetString("converge.state_output"), StateVerbose: v.GetBool("converge.state_verbose"),
		ConvergeTimeout: v.GetDuration("converge.timeout"), StopTimeout: v.GetDuration("converge.stop_timeout"),
		HookTimeout:  v.GetDuration("hooks.timeout"),
		FetchTimeout: v.GetDuration("fetch.timeout"), FetchRetry: v.GetDuration("fetch.retry"),
		FetchRate: v.GetInt64("fetch.rate"), FetchHostRate: v.GetInt64("fetch.host_rate"),
		FetchSlowest: v.GetInt64("fetch.slowest"), FetchPrivate: v.GetBool("fetch.private_redirects"),
		UnpackBytes: v.GetInt64("unpack.max_bytes"), UnpackFiles: v.GetInt("unpack.max_files"),
		UnpackDepth: v.GetInt("unpack.max_depth"), UnpackRatio: v.GetInt("unpack.max_ratio"),
		Health: recipe.Health{
			Grace: v.GetDuration("health.grace"), Deadline: v.GetDuration("health.deadline"),
			Interval: v.GetDuration("health.interval"), Timeout: v.GetDuration("health.timeout"),
			Retries: v.GetInt("health.retries"),
		},
		Notify: readNotify(v), Metrics: v.GetString("metrics.textfile"), UploadReports: v.GetBool("reports.upload"),
		Heartbeat: v.GetDuration("reports.heartbeat"),
		Dev:       v.GetStringSlice("environments.dev"), Prod: v.GetStringSlice("environments.prod"),
		AllowUnsigned: v.GetStringSlice("allow_unsigned"),
		ELB: ELB{
			Names: v.GetStringSlice("elb.names"), TargetGroups: v.GetStringSlice("elb.target_groups"),
			Deploy: v.GetBool("elb.deploy"), Timeout: v.GetDuration("elb.timeout"),
		},
		UndoLimit: v.GetInt64("undo.limit"), UndoFileLimit: v.GetInt64("undo.file_limit"),
		ArchiveRequired: v.GetBool("archive.required"),
		KeepArchives:    v.GetInt("keep.archives"),
		KeepReleases:    v.GetInt("keep.releases"), KeepFailed: v.GetInt("keep.failed"),
		KeepReports: v.GetInt("keep.reports"),
	}
}

func readNotify(v *viper.Viper) Notify {
	return Notify{
		On: v.GetStringSlice("notify.on"), Journal: v.GetBool("notify.journal"),
		WebhookURL: v.GetString("notify.webhook.url"), WebhookSecret: v.GetString("notify.webhook.secret_file"),
		WebhookTimeout: v.GetDuration("notify.webhook.timeout"), WebhookTries: v.GetInt("notify.webhook.tries"),
		MailTo: v.GetStringSlice("notify.mail.to"), MailFrom: v.GetString("notify.mail.from"),
		Sendmail: v.GetString("notify.mail.sendmail"),
		Command:  v.GetStringSlice("notify.command"),
	}
}
