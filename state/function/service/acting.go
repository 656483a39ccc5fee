package service

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Acting returns the functions that start and stop services.
func Acting(f *function.Facts) function.Table {
	s := service{f}
	return function.Table{
		"service.start": function.Of("name, no_block=False, unmask=False, unmask_runtime=False",
			s.act(host.Start)),
		"service.stop": function.Of("name, no_block=False", s.stop),
		"service.restart": function.Of("name, no_block=False, unmask=False, unmask_runtime=False",
			s.act(host.Restart)),
		"service.reload": function.Of("name, no_block=False, unmask=False, unmask_runtime=False",
			s.act(host.Reload)),
		"service.force_reload": function.Of("name, no_block=True, unmask=False, unmask_runtime=False",
			s.act(host.ReloadOrRestart)),
		"service.enable": function.Of(
			"name, no_block=False, unmask=False, unmask_runtime=False, root=None, **kwargs", s.enable),
		"service.disable":          function.Of("name, no_block=False, root=None, **kwargs", s.disable),
		"service.mask":             function.Of("name, runtime=False, root=None", s.boot(host.Mask)),
		"service.unmask":           function.Of("name, runtime=False, root=None", s.boot(host.Unmask)),
		"service.systemctl_reload": function.Of("", s.reread),
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

// unmask removes the mask of a unit: the permanent one, or the one until the next boot.
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
	if err := s.unmask(ctx, name, function.IsTrue(unmask), function.IsTrue(unmaskRuntime)); err != nil {
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

// reread makes systemd reload its unit files. The agent does so itself after a unit file has changed, but formulas
// may call it.
func (s service) reread(ctx context.Context) (bool, error) {
	if err := s.Host.Units.Allowed("systemctl daemon-reload"); err != nil {
		return false, err
	}
	_, err := program.Program{Name: "systemctl", Package: "systemd", Limit: 2 * time.Minute}.Do(ctx, s.Host,
		"daemon-reload")
	return err == nil, err
}
