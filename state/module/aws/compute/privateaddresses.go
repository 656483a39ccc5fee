package compute

import (
	"context"
	"errors"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
)

// privateAddresses implements boto_ec2.private_ips_present and private_ips_absent: secondary addresses of a network
// interface.
type privateAddresses struct {
	cloud.Common
	absent    bool
	Name      string   `sls:"name"`
	NICName   string   `sls:"network_interface_name"`
	NICID     string   `sls:"network_interface_id"`
	Addresses []string `sls:"private_ip_addresses,required"`
	Take      bool     `sls:"allow_reassignment"`
}

// Valid implements module.Validated.
func (s *privateAddresses) Valid() error {
	if (s.NICName == "") == (s.NICID == "") {
		return errors.New("one of network_interface_name and network_interface_id says which interface this is")
	}
	return nil
}

// Check implements module.Resource.
func (s *privateAddresses) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func (s *privateAddresses) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "ec2", s.Arguments)
	if err != nil {
		return nil, err
	}
	p, client := cloud.NewPlan(), network.EC2Of(a)
	has, err := interfaceOf(ctx, a, s.NICName, s.NICID)
	if err != nil {
		return nil, err
	}
	var now, want []string
	switch {
	case has != nil:
		for _, one := range has.PrivateIpAddresses {
			now = append(now, sdk.ToString(one.PrivateIpAddress))
		}
	case s.absent:
		return p, nil
	case !a.Expects("network interface", s.NICName):
		return nil, cloud.Missing("network interface", s.NICName+s.NICID, "boto_ec2.eni_present")
	}
	add, _ := cloud.Apart(now, s.Addresses)
	drop := slices.DeleteFunc(slices.Clone(s.Addresses), func(one string) bool { return !slices.Contains(now, one) })
	switch {
	case s.absent && len(drop) > 0:
		want, _ = cloud.Apart(drop, now)
		p.Differ("private_ip_addresses", cloud.Sorted(now), cloud.Sorted(want))
		p.Then("addresses removed", func(ctx context.Context) error {
			_, err := client.UnassignPrivateIpAddresses(ctx,
				&ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: has.NetworkInterfaceId,
					PrivateIpAddresses: drop})
			return cloud.Failed("removing addresses of network interface", s.NICName+s.NICID, err)
		})
	case !s.absent && len(add) > 0:
		p.Differ("private_ip_addresses", cloud.Sorted(now), cloud.Sorted(slices.Concat(now, add)))
		p.Then("addresses added", func(ctx context.Context) error {
			has, err := interfaceOf(ctx, a, s.NICName, s.NICID)
			if err != nil || has == nil {
				return errors.Join(err, cloud.Missing("network interface", s.NICName+s.NICID, "boto_ec2.eni_present"))
			}
			_, err = client.AssignPrivateIpAddresses(ctx,
				&ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: has.NetworkInterfaceId,
					PrivateIpAddresses: add, AllowReassignment: &s.Take})
			return cloud.Failed("adding addresses to network interface", s.NICName+s.NICID, err)
		})
	}
	return p, nil
}
