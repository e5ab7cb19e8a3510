-- How Argo CD sees a resource of staking.dev: by its conditions, as kstatus does, and by what kstatus has no word for.
local health = { status = "Progressing", message = "The operator has not seen it yet." }
local status = obj.status
if status == nil or status.observedGeneration == nil or status.observedGeneration < 0 then
  return health
end
if obj.metadata.generation ~= nil and status.observedGeneration ~= obj.metadata.generation then
  health.message = "The operator has not seen the newest spec yet."
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is(name, value)
  return conditions[name] ~= nil and conditions[name].status == value
end
local function message(name)
  return conditions[name] ~= nil and conditions[name].message or ""
end

if obj.metadata.deletionTimestamp ~= nil then
  health.message = message("Ready")
elseif is("Stalled", "True") then
  health = { status = "Degraded", message = message("Stalled") }
elseif conditions["Active"] ~= nil and conditions["Active"].reason == "Slashed" then
  health = { status = "Degraded", message = message("Active") }
elseif is("KeyUsedElsewhere", "True") then
  health = { status = "Degraded", message = message("KeyUsedElsewhere") }
elseif obj.spec ~= nil and (obj.spec.suspend == true or obj.spec.mode == "Plan") and not is("Ready", "True") then
  health = { status = "Suspended", message = message("Ready") }
elseif is("Ready", "True") then
  health = { status = "Healthy", message = message("Ready") }
else
  health.message = message("Ready")
end
return health
