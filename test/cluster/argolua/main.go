// Runs scripts as Argo CD (util/lua of v3.1.16) runs those that its ConfigMap holds: by gopher-lua, the interpreter that it embeds, with the libraries that it
// opens. Those are the base library and table; os is not a global, and `require("os")` has time and date alone; there is no string, no math and no io.
// A JSON array of {script, object} on standard input, an array of {result} or {error} on standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
)

type job struct {
	Script string         `json:"script"`
	Object map[string]any `json:"object"`
}

type outcome struct {
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

func open(state *lua.LState, name string, library lua.LGFunction) {
	state.Push(state.NewFunction(library))
	state.Push(lua.LString(name))
	state.Call(1, 0)
}

// The os of which time and date are left, for `require("os")`.
func safeOs(state *lua.LState) int {
	scratch := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer scratch.Close()
	open(scratch, lua.OsLibName, lua.OpenOs)
	whole := scratch.GetGlobal(lua.OsLibName).(*lua.LTable)
	safe := state.NewTable()
	for _, name := range []string{"time", "date"} {
		safe.RawSetString(name, state.NewFunction(whole.RawGetString(name).(*lua.LFunction).GFunction))
	}
	state.Push(safe)
	return 1
}

func execute(each job) (any, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	open(state, lua.LoadLibName, lua.OpenPackage)
	open(state, lua.BaseLibName, lua.OpenBase)
	open(state, lua.TabLibName, lua.OpenTable)
	state.PreloadModule(lua.OsLibName, safeOs)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", toLua(state, each.Object))
	if err := state.DoString(each.Script); err != nil {
		return nil, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("it returned no table but a %s", state.Get(-1).Type())
	}
	return fromLua(table), nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case float64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.NewTable()
		for _, each := range typed {
			table.Append(toLua(state, each))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for name, each := range typed {
			table.RawSetString(name, toLua(state, each))
		}
		return table
	}
	return lua.LNil
}

// An empty table is an empty array, as for Argo CD.
func fromLua(value lua.LValue) any {
	switch typed := value.(type) {
	case lua.LBool:
		return bool(typed)
	case lua.LNumber:
		return float64(typed)
	case lua.LString:
		return string(typed)
	case *lua.LTable:
		if key, _ := typed.Next(lua.LNil); key == lua.LNil || typed.MaxN() > 0 {
			list := []any{}
			for at := 1; at <= typed.MaxN(); at++ {
				list = append(list, fromLua(typed.RawGetInt(at)))
			}
			return list
		}
		object := map[string]any{}
		typed.ForEach(func(key, each lua.LValue) { object[key.String()] = fromLua(each) })
		return object
	}
	return nil
}

func run() error {
	var jobs []job
	if err := json.NewDecoder(os.Stdin).Decode(&jobs); err != nil {
		return err
	}
	outcomes := []outcome{}
	for _, each := range jobs {
		result, err := execute(each)
		if err != nil {
			outcomes = append(outcomes, outcome{Error: err.Error()})
			continue
		}
		outcomes = append(outcomes, outcome{Result: result})
	}
	return json.NewEncoder(os.Stdout).Encode(outcomes)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
