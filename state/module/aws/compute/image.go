package compute

import (
	"context"
	"errors"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// imageCreated implements boto_ec2.snapshot_created: an image of an instance.
type imageCreated struct {
	cloud.Common
	Name     string `sls:"name"`
	Image    string `sls:"ami_name,required"`
	Instance string `sls:"instance_name,required"`
	Wait     bool   `sls:"wait_until_available"`
	Longest  int    `sls:"wait_timeout_seconds"`
}

// Check implements module.Resource.
func (s *imageCreated) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func imageNamed(ctx context.Context, a *cloud.Account, name string) (*types.Image, error) {
	out, err := network.EC2Of(a).DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"},
		Filters: []types.Filter{{Name: sdk.String("name"), Values: []string{name}}}})
	if err != nil || len(out.Images) == 0 {
		return nil, cloud.Failed("looking for image", name, err)
	}
	return &out.Images[0], nil
}

func (s *imageCreated) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "ec2", s.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	has, err := imageNamed(ctx, a, s.Image)
	if has != nil || err != nil {
		return p, err
	}
	s.Instance = a.Called("instance", s.Instance)
	of := instanceNamed{InstanceName: s.Instance}
	from, err := of.find(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case from == nil && !a.Expects("instance", s.Instance):
		return nil, cloud.Missing("instance", s.Instance, "boto_ec2.instance_present")
	}
	a.Expect("image", s.Image)
	p.Create(value.NewMap("image", s.Image, "instance", s.Instance))
	p.Then("image made", func(ctx context.Context) error {
		from, err := of.find(ctx, a)
		if err != nil || from == nil {
			return errors.Join(err, cloud.Missing("instance", s.Instance, "boto_ec2.instance_present"))
		}
		if _, err := network.EC2Of(a).CreateImage(ctx, &ec2.CreateImageInput{InstanceId: from.InstanceId,
			Name: &s.Image}); err != nil {
			return cloud.Failed("making image", s.Image, err)
		}
		if !s.Wait {
			return nil
		}
		return cloud.WaitFor(ctx, "image "+s.Image+" is available", time.Duration(s.Longest)*time.Second,
			func(ctx context.Context) (bool, error) {
				now, err := imageNamed(ctx, a, s.Image)
				return now != nil && now.State == types.ImageStateAvailable, err
			})
	})
	return p, nil
}
