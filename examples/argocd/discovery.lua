-- Which actions a resource of staking.dev has now.
local suspended = obj.spec ~= nil and obj.spec.suspend == true
return {
  ["reconcile"] = { ["disabled"] = false },
  ["suspend"] = { ["disabled"] = suspended },
  ["resume"] = { ["disabled"] = not suspended },
}
