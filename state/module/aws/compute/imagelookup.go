package compute

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
)

// image returns the ID of the image and, if it is given by its name, the account that owns it. Each account can share
// an image of any name with all others, so a name means an image of the account itself, unless image_owners names
// others.
func (i *instancePresent) image(ctx context.Context, a *cloud.Account) (id, owner string, err error) {
	if i.Image != "" {
		return i.Image, "", nil
	}
	if i.ImageName == "" {
		return "", "", diag.Amazon.Hint(fmt.Errorf("instance %s has no image", i.title()), "give image_id or image_name")
	}
	owners := i.ImageOwners
	if len(owners) == 0 {
		owners = []string{"self"}
	}
	all, err := cloud.Pages(func(next *string) ([]types.Image, *string, error) {
		page, err := network.EC2Of(a).DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: owners, NextToken: next,
			Filters: []types.Filter{network.Filter("name", i.ImageName)}})
		if err != nil {
			return nil, nil, cloud.Failed("looking for image", i.ImageName, err)
		}
		return page.Images, page.NextToken, nil
	})
	if err != nil {
		return "", "", err
	}
	has, err := cloud.Only("image", i.ImageName, all, func(i *types.Image) *string { return i.ImageId }, "give image_id")
	switch {
	case err != nil:
		return "", "", err
	case has != nil:
		return sdk.ToString(has.ImageId), sdk.ToString(has.OwnerId), nil
	case a.Expects("image", i.ImageName):
		return cloud.Later, "", nil
	}
	return "", "", diag.Resource.Hint(fmt.Errorf("there is no image %s of %s", i.ImageName, strings.Join(owners, ", ")),
		"correct image_name, name the account that owns the image in image_owners, or give image_id")
}
