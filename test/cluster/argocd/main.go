// Argo CD's own code for the health of resources and for their actions: util/lua of v3.1.16, given the ConfigMap as its settings manager gives it.
// {config, runs: [{object, ask: "health"} | {object, ask: "actions"} | {object, ask: "action", action} | {object, ask: "script", script}]} on standard
// input, an array of {result} or {error} on standard output. `script` is run as an action is: for what a script must not be able to do.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	appv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type run struct {
	Object *unstructured.Unstructured `json:"object"`
	Ask    string                     `json:"ask"`
	Action string                     `json:"action"`
	Script string                     `json:"script"`
}

type given struct {
	Config map[string]string `json:"config"`
	Runs   []run             `json:"runs"`
}

type outcome struct {
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// As util/settings reads the keys of the ConfigMap: resource.customizations.<type>.<group_kind>. Its package brings a client of the API server, and is not needed.
func overridesOf(config map[string]string) (map[string]appv1.ResourceOverride, error) {
	overrides := map[string]appv1.ResourceOverride{}
	for key, value := range config {
		parts := strings.SplitN(key, ".", 4)
		if len(parts) < 4 || parts[0] != "resource" || parts[1] != "customizations" {
			continue
		}
		group, kind, ok := strings.Cut(parts[3], "_")
		if !ok || strings.Contains(kind, "_") {
			return nil, fmt.Errorf("%s names no group and kind", key)
		}
		override := overrides[group+"/"+kind]
		switch parts[2] {
		case "health":
			override.HealthLua = value
		case "actions":
			override.Actions = value
		default:
			return nil, fmt.Errorf("resource customization type %s not supported", parts[2])
		}
		overrides[group+"/"+kind] = override
	}
	return overrides, nil
}

func impactedBy(vm lua.VM, obj *unstructured.Unstructured, script string) (any, error) {
	impacted, err := vm.ExecuteResourceAction(obj, script, nil)
	if err != nil {
		return nil, err
	}
	return impacted, nil
}

func execute(overrides map[string]appv1.ResourceOverride, each run) (any, error) {
	vm := lua.VM{ResourceOverrides: overrides}
	switch each.Ask {
	case "health":
		// nil where there is no script: Argo CD then takes the resource for nothing in particular.
		return lua.ResourceHealthOverrides(overrides).GetResourceHealth(each.Object)
	case "actions":
		scripts, err := vm.GetResourceActionDiscovery(each.Object)
		if err != nil {
			return nil, err
		}
		return vm.ExecuteResourceActionDiscovery(each.Object, scripts)
	case "action":
		action, err := vm.GetResourceAction(each.Object, each.Action)
		if err != nil {
			return nil, err
		}
		return impactedBy(vm, each.Object, action.ActionLua)
	case "script":
		return impactedBy(vm, each.Object, each.Script)
	}
	return nil, fmt.Errorf("there is nothing to ask as %q", each.Ask)
}

func answer() error {
	var asked given
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	overrides, err := overridesOf(asked.Config)
	if err != nil {
		return err
	}
	outcomes := []outcome{}
	for _, each := range asked.Runs {
		result, err := execute(overrides, each)
		if err != nil {
			outcomes = append(outcomes, outcome{Error: err.Error()})
			continue
		}
		outcomes = append(outcomes, outcome{Result: result})
	}
	return json.NewEncoder(os.Stdout).Encode(outcomes)
}

func main() {
	if err := answer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
