package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/bucket"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/watchdog"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/grains/ec2"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, streams cli.IO) int {
	streams, flush := streams.Shown()
	defer flush()
	return cli.Run(ctx, newRoot(streams), args, streams)
}

// program has the flags and the state that all commands share.
type program struct {
	cli.IO
	root    string
	chroot  bool
	config  string
	store   string
	json    bool
	verbose bool
	events  progressForm
	lenient bool // the command works without settings that its user may not read
	// makesRoot says that the command makes the directory that stands for "/" if it does not exist
	makesRoot bool
	unprinted error             // why --json printed no report of the run; nil if it did
	checked   *error            // the result of site.CheckConfiguration; nil before checkConfiguration
	fromFile  []config.Variable // of /etc/corpus/environment; nil before useEnvironment
	unused    []config.Variable // of the same where others can read it: it is used by the unit alone
}

func newRoot(streams cli.IO) *cobra.Command {
	p := &program{IO: streams}
	root := &cobra.Command{
		Use:   "corpus-agent",
		Short: "Deploy and converge this host from signed artifacts",
		Long: `corpus-agent fetches the base and service artifacts that this host's channels name, verifies them,
converges the host, and makes them current. A deploy that fails is rolled back.

The first deploy needs the URL of the store and its root of trust: root.json is a copy of the keys/root.json that
"corpus store init" wrote beside the keys. After that, a timer runs "corpus-agent deploy" without arguments.

Commands of root use the variables of /etc/corpus/environment, as the timer's unit does; those that are set already have
priority.`,
		Example: `  corpus-agent deploy --store s3://bucket/prefix --trust-root ./root.json
  corpus-agent deploy myapp testing --store file:///srv/store --trust-root keys/root.json --root /tmp/try
  corpus-agent deploy --test
  corpus-agent status`,
		Version: cli.Version,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.root, "root", streams.Getenv("CORPUS_ROOT"),
		`directory that stands for "/" (CORPUS_ROOT); nothing outside it is changed`)
	flags.BoolVar(&p.chroot, "chroot", false, "the root is a complete system: run commands inside it")
	flags.StringVar(&p.config, "config", streams.Getenv("CORPUS_CONFIG"),
		"configuration file (CORPUS_CONFIG); /etc/corpus/agent.yaml by default")
	flags.StringVar(&p.store, "store", "", "URL of the store (CORPUS_STORE); stored by the first deploy")
	flags.BoolVar(&p.json, "json", false, "print JSON")
	flags.BoolVarP(&p.verbose, "verbose", "v", false, "print more details")
	root.AddCommand(p.deployCommand(), p.convergeCommand(), p.rollbackCommand(), p.statusCommand(), p.releasesCommand(),
		p.historyCommand(),
		p.reportCommand(), p.changesCommand(), p.whyCommand(), p.projectCommand(), p.elbCommand(), p.unquarantineCommand(),
		p.grainsCommand(), p.pillarCommand(), p.callCommand(),
		p.verifyCommand(), p.doctorCommand(), p.imageCommand(), p.membersCommand(), p.holdCommand(), p.unholdCommand(),
		p.configCommand(),
		cli.VersionCommand(p.IO))
	return root
}

func (p *program) layout() layout.Layout {
	if p.root == "" {
		return layout.At("")
	}
	// An absolute path, so that links and reports do not depend on the working directory.
	if abs, err := filepath.Abs(p.root); err == nil {
		return layout.At(abs)
	}
	return layout.At(p.root)
}

// settings reads the configuration. It returns an error if an unprivileged user controls a part of it. flags has
// the values of command line flags by the name of their setting.
func (p *program) settings(flags map[string]string) (config.Config, error) {
	sources, err := p.sources(flags)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(sources)
}

// checkConfiguration calls site.CheckConfiguration once, and returns its error.
func (p *program) checkConfiguration() error {
	if p.checked == nil {
		err := site.CheckConfiguration(p.layout())
		p.checked = &err
	}
	return *p.checked
}

// sources returns the places of the settings.
func (p *program) sources(flags map[string]string) (config.Sources, error) {
	if p.store != "" {
		flags["store"] = p.store
	}
	l := p.layout()
	if err := p.checkConfiguration(); err != nil {
		return config.Sources{}, err
	}
	p.useEnvironment()
	file, lastValid := p.config, l.ConfigCopy()
	if file == "" {
		file = l.Config()
	}
	if site.CheckSole(l, lastValid) != nil {
		lastValid = "" // a user may have written it; the next run makes the directory root's again
	}
	return config.Sources{File: file, Required: p.config != "", Copy: lastValid, Optional: p.lenient, Getenv: p.Getenv,
		Flags: flags}, nil
}

// agent returns the agent for a command, and prints a warning if its settings are not those of the file. Commands
// whose report has the warning use opened.
func (p *program) agent(flags map[string]string) (*agent.Agent, error) {
	a, err := p.opened(flags)
	if err != nil {
		return nil, err
	}
	if file := a.Config.File; file.Damaged != nil {
		fmt.Fprintf(p.Err, "warning: %s\n  hint: %s\n", indented("  ", file.Damaged.Error()), file.Damaged.Hint())
	} else if file.Denied != nil {
		printNotes(p.Err, []string{"the settings of this host are not used: " + file.Denied.Error()})
	}
	return a, nil
}

// opened is like agent, without the warning.
func (p *program) opened(flags map[string]string) (*agent.Agent, error) {
	settings, err := p.settings(flags)
	if err != nil {
		return nil, err
	}
	return p.openedAs(settings)
}

// openedAs returns the agent with settings that were read.
func (p *program) openedAs(settings config.Config) (*agent.Agent, error) {
	l := p.layout()
	if l.Relocated() {
		if err := p.openRoot(l.Root); err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		}
		if err := l.Contained(); err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		}
	}
	a := agent.New(site.Site{
		Layout: l, Chroot: p.chroot, Config: settings,
		Remote: sourceFiles(settings), Buckets: bucket.Reader(sourceFiles(settings).Options),
		Version: cli.Version, Within: p.Getenv("CORPUS_RUN"),
		Cloud: ec2.New(ec2.Options{AllowV1: settings.MetadataV1}), OnCloud: ec2.Likely(""),
	})
	a.Secrets().Add(p.secrets()...)
	a.Self, a.LockDescriptor = p.self(l), p.lent()
	a.Sinks, a.OpenStore = p.sinks(settings), openStore(settings, p.SlowStore)
	if !l.Relocated() {
		a.OpenBalancers = balancersOf(settings)
	}
	return a, nil
}

// openRoot makes the directory that stands for "/" for a command that changes a host. For other commands it returns
// an error if the directory does not exist.
func (p *program) openRoot(dir string) error {
	if p.makesRoot {
		return os.MkdirAll(dir, 0o755)
	}
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Usage.Hint(fmt.Errorf("there is no directory %s to stand for \"/\"", dir),
			"correct --root or CORPUS_ROOT; a deploy makes the directory, and for a dry run make it first")
	}
	return err
}

// sourceFiles returns the settings for fetching sources of states. Sources have no mirrors.
func sourceFiles(settings config.Config) stores.Files {
	return stores.Files{
		Options: stores.Options{Retry: store.RetryPolicy{Total: settings.FetchRetry}}, Private: settings.FetchPrivate,
		Pace: stores.Pace{Longest: settings.FetchTimeout, Slowest: settings.FetchSlowest},
	}
}

// openStore returns a function that opens stores. All stores share one limit on bandwidth, and those on one host a
// second one. With mirrors, each store is retried for a short time only.
func openStore(settings config.Config, slow func(url string) func(string)) func(url string) (store.Store, error) {
	options := stores.Options{Limiter: store.NewLimiter(settings.FetchRate)}
	if len(settings.Mirrors) > 0 {
		options.Retry = store.RetryPolicy{Attempts: 3, Longest: 2 * time.Second, Total: 15 * time.Second}
		options.Timeout = store.TimeoutPolicy{Answer: 10 * time.Second, Idle: 10 * time.Second, Slowest: 4 << 10}
	}
	if settings.FetchRetry > 0 {
		options.Retry = store.RetryPolicy{Total: settings.FetchRetry}
	}
	hosts := map[string]*rate.Limiter{}
	return func(url string) (store.Store, error) {
		with, host := options, stores.Host(url)
		if _, ok := hosts[host]; !ok {
			hosts[host] = store.NewLimiter(settings.FetchHostRate)
		}
		with.Host, with.Retry.Slow = hosts[host], slow(url)
		return stores.Open(url, with)
	}
}

// sinks returns the receivers of a run's events: the terminal or standard output, and systemd if it supervises the
// run.
func (p *program) sinks(settings config.Config) []report.Sink {
	sinks := []report.Sink{p.sink(settings)}
	if p.events == progressJSON {
		sinks = append(sinks, &report.Stream{Out: p.Err})
	}
	socket := p.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return sinks
	}
	_ = os.Unsetenv("NOTIFY_SOCKET") // programs that the run starts must not send notifications
	if w := watchdog.New(watchdog.Options{Socket: socket, Patience: patience(settings)}); w != nil {
		sinks = append(sinks, w)
	}
	return sinks
}

// patience returns how long a stage may take without an event: a little longer than its time limit.
func patience(c config.Config) func(stage string) time.Duration {
	const more = 15 * time.Minute
	longest := max(c.FetchTimeout, c.ConvergeTimeout, c.HookTimeout, c.ELB.Timeout)
	return func(stage string) time.Duration {
		switch stage {
		case "fetch":
			return c.FetchTimeout + more
		case "converge":
			return c.ConvergeTimeout + more
		}
		return longest + more
	}
}

// sink returns the sink that prints a run: lines for people, or one JSON document.
func (p *program) sink(settings config.Config) report.Sink {
	if p.json {
		return &document{p: p}
	}
	lines := &report.Lines{Out: p.Out, Color: p.Color(p.Out), Verbose: p.verbose, States: settings.StateVerbose,
		Mode: report.Mode(settings.StateOutput), Always: cli.Terminal(p.Out)}
	if cli.Terminal(p.Out) && p.events == "" { // bars and events may be on the same terminal
		lines.Bars = report.NewBars(cli.File(p.Out))
	}
	return lines
}

// answer prints a result as JSON, or as text.
func (p *program) answer(result any, text string) error {
	if p.json {
		return p.JSON(result)
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}
