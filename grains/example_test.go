package grains_test

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func ExampleParse() {
	id, err := grains.Parse("myapp-testing-useast1-898900.example.com", grains.Convention{})
	fmt.Println(id.Service, id.Instance, id.Region, id.Node, id.Domain, err)

	_, err = grains.Parse("localhost", grains.Convention{})
	fmt.Println(err != nil)
	// Output:
	// myapp testing useast1 898900 example.com <nil>
	// true
}

func ExampleNewConvention() {
	sites, err := grains.NewConvention("{region}-{service}-{instance}")
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := grains.Parse("fra1-shop-live", sites)
	fmt.Println(id.Service, id.Instance, id.Region, err)
	// Output:
	// shop live fra1 <nil>
}

// A host whose name does not follow the convention gets the identity that a person gave.
func ExampleDecide() {
	id, from, err := grains.Decide(context.Background(), grains.Request{
		Hostname: "debian", Given: grains.Identity{Service: "myapp", Instance: "testing"},
	})
	fmt.Println(id.Group(), "from", from, err)
	// Output:
	// myapp-testing from arguments <nil>
}

// A later layer replaces a grain of an earlier one, and the identity takes precedence over all.
func ExampleLayers_Merge() {
	all := grains.Layers{
		Core:     value.NewMap("os", "Debian", "role", "none"),
		Static:   value.NewMap("role", "web", "service_name", "other"),
		Identity: grains.Identity{Service: "myapp", Instance: "testing"},
	}.Merge()
	for _, name := range []string{"os", "role", "service_name"} {
		grain, _ := all.Value(name).(string)
		fmt.Println(name, grain)
	}
	// Output:
	// os Debian
	// role web
	// service_name myapp
}
