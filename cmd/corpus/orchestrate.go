package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/orchestration"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// orchestrating has the flags and the state of the orchestrate command.
type orchestrating struct {
	*program
	tree, minion, endpoint string
	set, pillar            []string
	configuration          []string // files of the minion's configuration that were read
	test, yes              bool
	endpointGiven          bool
	parallel               int
	redactor               *redact.Redactor
	planned                *aws.Cloud // of the plan that was shown
}

func (p *program) orchestrateCommand() *cobra.Command {
	o := &orchestrating{program: p, redactor: &redact.Redactor{}}
	c := &cobra.Command{
		Use:   "orchestrate [SLS]...",
		Short: "Make what hosts live in: security groups, roles, load balancers, auto scaling groups",
		Long: `orchestrate reads SLS files whose states (boto_secgroup, boto_elb, boto_asg and so on) are resources of AWS, shows
what differs, and corrects it. It runs wherever people and CI run corpus, and changes no host. Without names of SLS
files the top file says which count. docs/orchestration.md lists the states.

Credentials are those of AWS's own tools, or of the profile that a state names. A plan that deletes something is asked
about on a terminal; elsewhere it takes --yes.

Exit codes are the agent's: 0 done, or with --test nothing failed; 2 usage, or SLS that does not compile; 3 states
failed; 130 interrupted.`,
		Example: `  corpus orchestrate --tree ./salt orchestration.myapp --test
  corpus orchestrate --tree ./salt orchestration.myapp --set service_instance=testing
  corpus orchestrate -c ./salt/.orchestration`,
		RunE: func(c *cobra.Command, args []string) error {
			o.endpointGiven = c.Flags().Changed("endpoint")
			return o.redactor.Error(o.run(c.Context(), args)) // errors quote lines of SLS files, with what templates made
		},
	}
	f := c.Flags()
	f.StringVar(&o.tree, "tree", "", "directory of the tree: SLS files in it, or below states; pillar below pillar")
	f.StringVarP(&o.minion, "config-dir", "c", "", "directory with a Salt minion file that names the trees instead")
	f.StringArrayVar(&o.set, "set", nil, "grain as NAME=VALUE; may be given several times")
	f.StringArrayVar(&o.pillar, "pillar", nil,
		"directory of pillar files instead, or a YAML file whose content goes over the pillar")
	f.StringVar(&o.endpoint, "endpoint", "", "URL of a server to ask instead of AWS (aws.endpoint)")
	f.BoolVar(&o.test, "test", false, "only show what would be done")
	f.BoolVar(&o.yes, "yes", false, "delete what the plan deletes without asking")
	f.IntVar(&o.parallel, "parallel", 8, "how many resources are read or made at once")
	return c
}

func (o *orchestrating) run(ctx context.Context, names []string) error {
	cli.ExtendDeadline(endRequests)
	if err := o.valid(); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	var all []string
	for _, name := range names {
		all = append(all, strings.Split(name, ",")...)
	}
	dry, err := o.pass(ctx, all, true)
	if err != nil {
		return err
	}
	if o.test || ctx.Err() != nil || !dry.wouldChange() {
		return o.end(ctx, dry)
	}
	if !o.json {
		dry.plan(o.Out)
	}
	if err := o.agreed(ctx, dry.deletions()); err != nil {
		return err
	}
	done, err := o.pass(ctx, all, false)
	if err != nil {
		return err
	}
	return o.end(ctx, done)
}

// valid returns an error for flags that no run can use.
func (o *orchestrating) valid() error {
	if o.parallel < 1 {
		return diag.Usage.Hint(fmt.Errorf("--parallel is %d", o.parallel), "give 1 or more")
	}
	if !o.endpointGiven && o.endpoint == "" {
		return nil
	}
	at, err := url.Parse(o.endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return diag.Usage.Hint(fmt.Errorf("--endpoint %q is not the URL of a server", redact.URLs(o.endpoint)),
			"write http:// or https:// and the address of the server, such as http://127.0.0.1:5000")
	}
	return nil
}

// endRequests is how long a run that is interrupted waits for the requests under way, so that its report has them.
const endRequests = 30 * time.Second

// pass reads all files again, and compiles and runs the program once.
func (o *orchestrating) pass(ctx context.Context, names []string, dry bool) (*orchestrated, error) {
	s, err := o.session(dry)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	program, err := o.compile(ctx, s, names)
	if err != nil {
		return nil, err
	}
	if len(program.Steps) == 0 {
		return nil, exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("the tree declares nothing"),
			"name an SLS file, or give this minion some in the top file"))
	}
	result := &orchestrated{dry: dry, all: len(program.Steps), started: time.Now()}
	var observer exec.Observer
	if !dry && !o.json {
		observer = &progress{out: o.Err, all: len(program.Steps)}
	}
	result.list = s.Run(ctx, program, observer).All()
	result.took = time.Since(result.started)
	return result, nil
}

func (o *orchestrating) compile(ctx context.Context, s *session.Session, names []string) (*compile.Program, error) {
	if len(names) > 0 {
		return s.Program(ctx, s.Named(names...))
	}
	matches, err := s.Top(ctx)
	if err != nil {
		return nil, err
	}
	return s.Program(ctx, matches)
}

// session opens a session with the trees.
func (o *orchestrating) session(dry bool) (*session.Session, error) {
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		return nil, err
	}
	id, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the name of this machine: %w", err)
	}
	settings := session.Settings{Host: h, ID: id, Grains: value.NewMap("id", id), Options: value.NewMap(),
		Version: cli.Version, Redactor: o.redactor, Test: dry, Strict: true, Parallel: o.parallel, Grace: endRequests}
	if err := o.trees(&settings); err != nil {
		return nil, err
	}
	if err := o.given(&settings); err != nil {
		return nil, err
	}
	if err := checkTrusted(&settings, append(o.configuration, o.pillar...)); err != nil {
		return nil, err
	}
	if err := checkAWSFiles(); err != nil {
		return nil, err
	}
	settings.Log = func(level, message string) {
		if dry && (level == "warning" || level == "error" || level == "critical") {
			fmt.Fprintf(o.Err, "%s: %s\n", level, message)
		}
	}
	cloud := &aws.Cloud{Endpoint: o.endpoint, Bootstrap: userData}
	switch {
	case dry:
		o.planned = cloud
	case !o.yes:
		cloud.Agreed = o.planned.Removals()
	}
	settings.Tables = orchestration.Tables{Cloud: cloud}
	return session.New(settings), nil
}

// end shows the results, stores the report and returns an error with the exit code.
func (o *orchestrating) end(ctx context.Context, r *orchestrated) error {
	kept, keepErr := r.keep(o.Getenv)
	if o.json {
		if err := o.JSON(r.document()); err != nil {
			return err
		}
	} else {
		r.show(o.Out)
		if kept != "" {
			fmt.Fprintf(o.Err, "report: %s\n", kept)
		}
	}
	if keepErr != nil {
		fmt.Fprintf(o.Err, "the report could not be kept: %v\n", keepErr)
		if hint := diag.HintOf(keepErr); hint != "" {
			fmt.Fprintln(o.Err, diag.HintLines(hint))
		}
	} else if kept == "" {
		fmt.Fprintln(o.Err, "no report is kept: neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed := r.failures(); failed > 0 {
		return exit.WithCode(exit.Failed, cli.AlreadyReported(errors.New(diag.Count(failed, "state")+" failed")))
	}
	return nil
}
