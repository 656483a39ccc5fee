package network

import (
	"cmp"
	"context"
	"errors"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// peering selects a connection between two VPCs, by its ID or its tag Name.
type peering struct {
	cloud.Common
	ID       string `sls:"conn_id"`
	Name     string `sls:"name"`
	ConnName string `sls:"conn_name"`
}

// peeringsOf returns the connections of the region that match, without those that are deleted, refused or failed. It
// compares them here, since emulators of AWS ignore the filters of this request.
func peeringsOf(ctx context.Context, a *cloud.Account,
	match func(c types.VpcPeeringConnection) bool) ([]types.VpcPeeringConnection, error) {
	all, err := cloud.Pages(func(next *string) ([]types.VpcPeeringConnection, *string, error) {
		page, err := EC2Of(a).DescribeVpcPeeringConnections(ctx, &ec2.DescribeVpcPeeringConnectionsInput{NextToken: next})
		if err != nil {
			return nil, nil, cloud.Failed("listing the peering connections of", a.Config.Region, err)
		}
		return page.VpcPeeringConnections, page.NextToken, nil
	})
	return slices.DeleteFunc(all, func(c types.VpcPeeringConnection) bool { return !underway(c) || !match(c) }), err
}

// underway reports whether a connection exists, or waits to be accepted.
func underway(c types.VpcPeeringConnection) bool {
	if c.Status == nil {
		return false
	}
	switch c.Status.Code {
	case types.VpcPeeringConnectionStateReasonCodeInitiatingRequest,
		types.VpcPeeringConnectionStateReasonCodePendingAcceptance,
		types.VpcPeeringConnectionStateReasonCodeProvisioning, types.VpcPeeringConnectionStateReasonCodeActive:
		return true
	}
	return false
}

// find returns the connection that conn_id, conn_name or the name of the state selects, or nil if there is none.
func (c *peering) find(ctx context.Context, a *cloud.Account) (*types.VpcPeeringConnection, error) {
	all, err := peeringsOf(ctx, a, func(has types.VpcPeeringConnection) bool {
		if c.ID != "" {
			return sdk.ToString(has.VpcPeeringConnectionId) == c.ID
		}
		return NameOf(has.Tags) == c.title()
	})
	if err != nil {
		return nil, err
	}
	return cloud.Only("peering connection", c.title(), all,
		func(has *types.VpcPeeringConnection) *string { return has.VpcPeeringConnectionId }, "give conn_id")
}

func (c *peering) title() string {
	if c.ConnName != "" {
		return c.ConnName
	}
	return c.Name
}

// peeringPresent implements boto_vpc.vpc_peering_connection_present and request_vpc_peering_connection.
type peeringPresent struct {
	peering
	RequesterID   string `sls:"requester_vpc_id"`
	RequesterName string `sls:"requester_vpc_name"`
	PeerID        string `sls:"peer_vpc_id"`
	PeerName      string `sls:"peer_vpc_name"`
	PeerOwner     string `sls:"peer_owner_id"`
	PeerRegion    string `sls:"peer_region"`
}

// Valid implements module.Validated.
func (c *peeringPresent) Valid() error {
	if (c.RequesterID == "") == (c.RequesterName == "") || (c.PeerID == "") == (c.PeerName == "") {
		return diag.Amazon.Hint(errors.New("a peering connection joins two VPCs"),
			"give one of requester_vpc_id and requester_vpc_name, and one of peer_vpc_id and peer_vpc_name")
	}
	return nil
}

// Check implements module.Resource.
func (c *peeringPresent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return c.Planned(c.look(ctx))
}

// ends returns the IDs of the VPCs that the connection joins.
func (c *peeringPresent) ends(ctx context.Context, a *cloud.Account) (requester, peer string, err error) {
	if requester, err = VPCOf(ctx, a, c.RequesterID, c.RequesterName); err != nil {
		return "", "", err
	}
	peer, err = VPCOf(ctx, a, c.PeerID, c.PeerName)
	return requester, peer, err
}

func (c *peeringPresent) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := c.Cloud.Account(ctx, "vpc", c.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	requester, peer, err := c.ends(ctx, a)
	if err != nil {
		return nil, err
	}
	if requester != cloud.Later && peer != cloud.Later {
		all, err := peeringsOf(ctx, a, func(has types.VpcPeeringConnection) bool {
			return vpcOfEnd(has.RequesterVpcInfo) == requester && vpcOfEnd(has.AccepterVpcInfo) == peer
		})
		if err != nil || len(all) > 0 {
			return p, err
		}
	}
	a.Expect("peering", c.title())
	p.Create(value.NewMap("vpc_peering_connection", c.title(), "requester_vpc_id", requester, "peer_vpc_id", peer))
	p.Then("peering connection requested", func(ctx context.Context) error {
		requester, peer, err := c.ends(ctx, a)
		if err != nil {
			return err
		}
		_, err = EC2Of(a).CreateVpcPeeringConnection(ctx, &ec2.CreateVpcPeeringConnectionInput{VpcId: &requester,
			PeerVpcId: &peer, PeerOwnerId: cloud.Optional(c.PeerOwner), PeerRegion: cloud.Optional(c.PeerRegion),
			TagSpecifications: Specs(types.ResourceTypeVpcPeeringConnection, nil, c.title())})
		return cloud.Failed("requesting peering connection", c.title(), err)
	})
	return p, nil
}

// vpcOfEnd returns the ID of the VPC at one end of a connection.
func vpcOfEnd(end *types.VpcPeeringConnectionVpcInfo) string {
	if end == nil {
		return ""
	}
	return sdk.ToString(end.VpcId)
}

// peeringAccepted implements boto_vpc.accept_vpc_peering_connection.
type peeringAccepted struct{ peering }

// Check implements module.Resource.
func (c *peeringAccepted) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := c.Cloud.Account(ctx, "vpc", c.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := c.find(ctx, a)
	status := cloud.Later
	switch {
	case err != nil:
		return module.Diff{}, err
	case has == nil && !a.Expects("peering", c.title()):
		return module.Diff{}, cloud.Missing("peering connection", cmp.Or(c.ID, c.title()),
			"boto_vpc.vpc_peering_connection_present")
	case has != nil:
		status = string(has.Status.Code)
	}
	if status != cloud.Later && status != "pending-acceptance" && status != "initiating-request" {
		return c.Planned(p, nil)
	}
	p.Differ("status", status, "active")
	p.Then("peering connection accepted", func(ctx context.Context) error {
		return cloud.WaitFor(ctx, "peering connection "+c.title()+" waits to be accepted", cloud.Soon,
			func(ctx context.Context) (bool, error) {
				has, err := c.find(ctx, a)
				if err != nil || has == nil || has.Status.Code == types.VpcPeeringConnectionStateReasonCodeInitiatingRequest {
					return false, err
				}
				_, err = EC2Of(a).AcceptVpcPeeringConnection(ctx,
					&ec2.AcceptVpcPeeringConnectionInput{VpcPeeringConnectionId: has.VpcPeeringConnectionId})
				return err == nil, cloud.Failed("accepting peering connection", c.title(), err)
			})
	})
	return c.Planned(p, nil)
}

// peeringAbsent implements boto_vpc.vpc_peering_connection_absent and delete_vpc_peering_connection.
type peeringAbsent struct{ peering }

// Check implements module.Resource.
func (c *peeringAbsent) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	a, err := c.Cloud.Account(ctx, "vpc", c.Arguments)
	if err != nil {
		return module.Diff{}, err
	}
	p := cloud.NewPlan()
	has, err := c.find(ctx, a)
	if has != nil && err == nil {
		p.Remove(sdk.ToString(has.VpcPeeringConnectionId), value.NewMap("vpc_peering_connection", c.title()))
		p.Then("peering connection deleted", func(ctx context.Context) error {
			_, err := EC2Of(a).DeleteVpcPeeringConnection(ctx,
				&ec2.DeleteVpcPeeringConnectionInput{VpcPeeringConnectionId: has.VpcPeeringConnectionId})
			return cloud.Failed("deleting peering connection", c.title(), err)
		})
	}
	return c.Planned(p, err)
}
