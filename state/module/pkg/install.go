package pkg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// install holds the arguments and data that the states that install packages have in common.
type install struct {
	selection
	FromRepo       string `sls:"fromrepo"` // a release or repository to prefer
	Refresh        *bool  `sls:"refresh"`  // nil: once per run
	CacheValidTime int    `sls:"cache_valid_time"`
	SkipVerify     bool   `sls:"skip_verify"`
	Recommends     *bool  `sls:"install_recommends"`
	OnlyUpgrade    bool   `sls:"only_upgrade"`
	NewConfig      bool   `sls:"force_conf_new"`

	// These are errors with dnf and yum, and ignored with other package managers.
	EnableRepo  any `sls:"enablerepo"`
	DisableRepo any `sls:"disablerepo"`

	// These are ignored: they concern other package managers or Salt itself. A package on hold that a state names
	// is always changed and put back on hold, and the error for an unknown package always has suggestions.
	UpdateHolds     any `sls:"update_holds"`
	SkipSuggestions any `sls:"skip_suggestions"`
	RebootCodes     any `sls:"report_reboot_exit_codes"`
	ForceYes        any `sls:"force_yes"`
	Capabilities    any `sls:"resolve_capabilities"`
	WatchFlags      any `sls:"watch_flags"`

	refreshErr error    // error of a refresh after which the old indexes are used
	unreported []string // warnings of a refresh for a batch that was not possible
	// real records, for packages that are not installed but provided by others, whether the repositories have them.
	real map[string]bool
}

func newInstall() install { return install{selection: selection{Normalize: true}} }

// stale reports whether the indexes must be refreshed before packages are installed.
func (i *install) stale(h *host.Host) bool {
	return (i.Refresh == nil || *i.Refresh) && !h.Packages.Fresh(time.Duration(i.CacheValidTime)*time.Second)
}

// refresh refreshes the indexes if they are stale. A failure is an error only if the state sets refresh;
// otherwise it is a warning and the old indexes are used.
func (i *install) refresh(ctx context.Context, h *host.Host) (warnings []string, err error) {
	if !i.stale(h) {
		return i.unreported, nil
	}
	warnings, i.refreshErr = h.Packages.Refresh(ctx)
	if i.refreshErr != nil && i.Refresh != nil {
		return warnings, i.refreshErr
	}
	if i.refreshErr != nil {
		warnings = append(warnings, i.refreshErr.Error())
	}
	return warnings, nil
}

// blame adds to err the error of an earlier refresh that failed, or that did not reach a repository which may have
// the missing package.
func (i *install) blame(ctx context.Context, h *host.Host, names []string, err error) error {
	before := i.refreshErr
	if before == nil && err != nil && h.Packages.Outage() != nil && i.unavailable(ctx, h, names, err) {
		before = h.Packages.Outage()
	}
	if err == nil || before == nil {
		return err
	}
	return diag.KeepHint(fmt.Errorf("%w; before that, %w", err, before), diag.HintOf(before))
}

// unavailable reports whether the indexes lack a wanted package or version.
func (i *install) unavailable(ctx context.Context, h *host.Host, names []string, err error) bool {
	var lack *host.Missing
	if errors.As(err, &lack) {
		return true
	}
	offers, err := h.Packages.Offers(ctx, names, i.FromRepo)
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return offers[name].Candidate == "" })
}

// transaction returns the transaction for packages with the options of the state.
func (i *install) transaction(packages []host.Wanted) host.Transaction {
	return host.Transaction{
		Packages: packages, Release: i.FromRepo, Recommends: i.Recommends, OnlyUpgrade: i.OnlyUpgrade,
		Unverified: i.SkipVerify, NewConfig: i.NewConfig,
	}
}

// findRealPackages records in i.real which packages the repositories have, of those that are not installed but
// provided by installed packages.
func (i *install) findRealPackages(ctx context.Context, h *host.Host, v *host.Inventory, list []wanted) error {
	var names []string
	for _, w := range list {
		if w.version == "" && len(v.Versions(w.name)) == 0 && len(v.Providers(w.name)) > 0 {
			names = append(names, w.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	offers, err := h.Packages.Offers(ctx, names, i.FromRepo)
	i.real = map[string]bool{}
	for name, offer := range offers {
		i.real[name] = len(offer.Versions) > 0
	}
	return err
}

// present reports whether a package is installed in an acceptable version. For a name that no repository has,
// an installed package that provides it suffices.
func (i *install) present(h *host.Host, v *host.Inventory, w wanted) (bool, error) {
	versions := v.Versions(w.name)
	if w.version == "" {
		return len(versions) > 0 || len(v.Providers(w.name)) > 0 && !i.real[w.name], nil
	}
	d, err := newDemand(w.version, i.IgnoreEpoch, h)
	if err != nil {
		return false, fmt.Errorf("package %s: %w", w.name, err)
	}
	return d.allowsAny(versions), nil
}

// chooses returns an error if enablerepo or disablerepo is set for dnf or yum. Other package managers have no
// such options and ignore them.
func (i *install) chooses(h *host.Host) error {
	family := h.Packages.Family()
	if i.EnableRepo == nil && i.DisableRepo == nil || family != "dnf" && family != "yum" {
		return nil
	}
	return diag.Argument.Hint(errors.New("enablerepo and disablerepo do not exist"),
		"write `- fromrepo: NAME` to take packages from one repository, or enable it in a pkgrepo.managed state that this "+
			"one requires")
}

// resolve converts wanted packages to those of a transaction: version conditions become the newest version that
// meets them.
func (i *install) resolve(ctx context.Context, h *host.Host, list []wanted) ([]host.Wanted, error) {
	var versioned []string
	for _, w := range list {
		if w.version != "" {
			versioned = append(versioned, w.name)
		}
	}
	offers, err := h.Packages.Offers(ctx, versioned, i.FromRepo)
	if err != nil {
		return nil, err
	}
	order := make([]host.Wanted, 0, len(list))
	for _, w := range list {
		version, err := i.chosen(h, w, offers[w.name])
		if err != nil {
			return nil, err
		}
		order = append(order, host.Wanted{Name: w.name, Version: version})
	}
	return order, nil
}

func (i *install) chosen(h *host.Host, w wanted, offer host.Offer) (string, error) {
	if w.version == "" {
		return "", nil
	}
	d, err := newDemand(w.version, i.IgnoreEpoch, h)
	if err != nil {
		return "", fmt.Errorf("package %s: %w", w.name, err)
	}
	version, ok := d.choose(offer)
	if !ok {
		err := host.WithMissing(fmt.Errorf("the repositories have no version %s of package %s", w.version, w.name),
			host.APackage, w.name)
		if len(offer.Versions) == 0 {
			return "", diag.Packages.Hint(err,
				"they do not have the package at all; add the repository that does in a pkgrepo.managed state")
		}
		return "", diag.Packages.Hint(err, "they have %v", offer.Versions)
	}
	return version, nil
}

// missing returns the wanted packages that are not present.
func (i *install) missing(h *host.Host, v *host.Inventory, list []wanted) []string {
	var names []string
	for _, w := range list {
		if ok, err := i.present(h, v, w); err != nil || !ok {
			names = append(names, w.name)
		}
	}
	return names
}

func notThere(h *host.Host, names []string) error {
	err := fmt.Errorf("after the package manager was done these are still not as they should be: %v", names)
	return diag.Packages.Hint(err, "see %s for what it did instead", historyOf(h))
}

// historyOf returns where the package manager of a host logs its transactions.
func historyOf(h *host.Host) string {
	switch h.Packages.Family() {
	case "dnf":
		return "`dnf history info`"
	case "yum":
		return "/var/log/yum.log"
	case "zypper":
		return "/var/log/zypp/history"
	case "pacman":
		return "/var/log/pacman.log"
	case "apk":
		return "/etc/apk/world"
	}
	return "/var/log/apt/history.log"
}

func nameList(list []wanted) []string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = w.name
	}
	return names
}

// preseed sets the answers to debconf questions from a file.
func preseed(ctx context.Context, h *host.Host, sources Sources, url, env string) error {
	file, err := sources.Open(ctx, url, env)
	if err != nil {
		return fmt.Errorf("reading answers to configuration questions: %w", err)
	}
	defer file.Close()
	const most = 1 << 20
	answers, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return fmt.Errorf("reading answers to configuration questions from %s: %w", url, err)
	}
	if err := setSelections(ctx, h, string(answers)); err != nil {
		return diag.Argument.Hint(fmt.Errorf("setting answers to configuration questions from %s: %w", url, err),
			"each line reads: package question type value")
	}
	return nil
}

// setSelections sets answers to debconf questions. It passes them on the standard input, since they may be secrets and
// other users can read the arguments of a program.
func setSelections(ctx context.Context, h *host.Host, answers string) error {
	out, err := h.Shell(ctx, host.Line{Text: "debconf-set-selections", Argv: []string{"debconf-set-selections"},
		Stdin: answers, Limit: 5 * time.Minute}) // any user can read the database, and thus lock it
	switch {
	case err != nil:
		return err
	case out.TimedOut:
		return errors.New("it did not end in 5 minutes; see which process has /var/cache/debconf/config.dat open")
	case out.Code != 0:
		return fmt.Errorf("it ended with code %d", out.Code)
	}
	return nil
}
