package function

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Acting makes the table of what module.run may call: everything that templates may, and functions
// that change the host. It is never given to a template.
func Acting(facts Facts) Table {
	t := New(facts)
	return t.add(serviceActs(&facts), packageActs(&facts), fileActs(&facts), stateActs(&facts), copyActs(&facts), cronActs(&facts),
		archiveActs(&facts), pipActs(&facts), lowpkgActs(&facts), dataActs(&facts), networkActs(&facts), systemActs(&facts), grainsActs(&facts), shadowActs(&facts), scriptActs(&facts))
}

// serviceActs start and stop services.
func serviceActs(f *Facts) Table {
	s := service{f}
	return Table{
		"service.start":            Of("name, no_block=False, unmask=False, unmask_runtime=False", s.act(host.Start)),
		"service.stop":             Of("name, no_block=False", s.stop),
		"service.restart":          Of("name, no_block=False, unmask=False, unmask_runtime=False", s.act(host.Restart)),
		"service.reload":           Of("name, no_block=False, unmask=False, unmask_runtime=False", s.act(host.Reload)),
		"service.force_reload":     Of("name, no_block=True, unmask=False, unmask_runtime=False", s.act(host.ReloadOrRestart)),
		"service.enable":           Of("name, no_block=False, unmask=False, unmask_runtime=False, root=None, **kwargs", s.enable),
		"service.disable":          Of("name, no_block=False, root=None, **kwargs", s.disable),
		"service.mask":             Of("name, runtime=False, root=None", s.boot(host.Mask)),
		"service.unmask":           Of("name, runtime=False, root=None", s.boot(host.Unmask)),
		"service.systemctl_reload": Of("", s.reread),
	}
}

func (s service) act(verb host.UnitVerb) func(context.Context, string, bool, bool, bool) (bool, error) {
	return func(ctx context.Context, name string, noBlock, unmask, unmaskRuntime bool) (bool, error) {
		if err := s.unmask(ctx, name, unmask, unmaskRuntime); err != nil {
			return false, err
		}
		err := s.Host.Units.Act(ctx, verb, name, !noBlock)
		return err == nil, err
	}
}

func (s service) stop(ctx context.Context, name string, noBlock bool) (bool, error) {
	err := s.Host.Units.Act(ctx, host.Stop, name, !noBlock)
	return err == nil, err
}

// unmask lets a unit be started that was masked, for good or until the next boot.
func (s service) unmask(ctx context.Context, name string, forGood, runtime bool) error {
	var errs []error
	if forGood {
		errs = append(errs, s.Host.Units.SetBoot(ctx, host.Unmask, name, false))
	}
	if runtime {
		errs = append(errs, s.Host.Units.SetBoot(ctx, host.Unmask, name, true))
	}
	return errors.Join(errs...)
}

func (s service) enable(ctx context.Context, name string, _, unmask, unmaskRuntime, _ any, _ *value.Map) (bool, error) {
	if err := s.unmask(ctx, name, isTrue(unmask), isTrue(unmaskRuntime)); err != nil {
		return false, err
	}
	err := s.Host.Units.SetBoot(ctx, host.Enable, name, false)
	return err == nil, err
}

func (s service) disable(ctx context.Context, name string, _, _ any, _ *value.Map) (bool, error) {
	err := s.Host.Units.SetBoot(ctx, host.Disable, name, false)
	return err == nil, err
}

func (s service) boot(verb host.BootVerb) func(context.Context, string, bool, any) (bool, error) {
	return func(ctx context.Context, name string, runtime bool, _ any) (bool, error) {
		err := s.Host.Units.SetBoot(ctx, verb, name, runtime)
		return err == nil, err
	}
}

// reread has systemd read its unit files. The units of this host do so by themselves when one has
// changed; a formula may still ask.
func (s service) reread(ctx context.Context) (bool, error) {
	if err := s.Host.Units.Allowed("systemctl daemon-reload"); err != nil {
		return false, err
	}
	_, err := host.Program{Name: "systemctl", Package: "systemd", Limit: 2 * time.Minute}.Do(ctx, s.Host, "daemon-reload")
	return err == nil, err
}

// packageActs are about the indexes of repositories; what else changes packages is done by states.
func packageActs(f *Facts) Table {
	return Table{"pkg.refresh_db": Of("cache_valid_time=0, failhard=False, **kwargs", pkg{f}.refresh)}
}

// refresh gets the indexes. What could not be had of them is told, and with failhard an error.
func (p pkg) refresh(ctx context.Context, age any, failhard bool, _ *value.Map) (*value.Map, error) {
	told := value.NewMap()
	seconds, err := strconv.Atoi(value.Str(age))
	if age != nil && err != nil {
		return nil, typeError("argument cache_valid_time: a number of seconds was expected")
	}
	if err := p.Host.Packages.Allowed("refreshing the package indexes"); err != nil {
		return nil, err
	}
	if seconds > 0 && p.Host.Packages.Fresh(time.Duration(seconds)*time.Second) {
		return told, nil
	}
	warnings, err := p.Host.Packages.Refresh(ctx)
	for _, w := range warnings {
		told.Set(w, false)
	}
	if err == nil && failhard && len(warnings) > 0 {
		err = fmt.Errorf("refreshing the package indexes: %s", warnings[0])
	}
	return told, err
}
