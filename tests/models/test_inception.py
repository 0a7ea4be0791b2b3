"""The Inception regressor: published sizes, the block against its plain form, every shape of stack and head."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from hotloop.models.inception import InceptionBlock, InceptionRegressor, average_fields, block_widths

PUBLISHED = {"channels": 3, "height": 224, "width": 224, "stem": [], "blocks": [96]}
SMALL = {"outputs": 2, "channels": 3, "height": 32, "width": 40}

REGRESSORS = {
    "published": {"blocks": [6], "head": "flatten"},
    "published, gap": {"blocks": [6]},
    "stem": {"stem": [4, 6], "blocks": [6], "grid": 4},
    "stack, max": {"stem": [4], "blocks": [4, 6], "downsample": "max", "grid": 3},
    "stack, conv": {"stem": [4], "blocks": [4, 6, 5], "downsample": "conv", "grid": 2},
    "stack, none": {"blocks": [4, [3, 2, 5, 4, 6, 1]], "downsample": "none", "head": "flatten", "pool": 5},
    "dropout": {"stem": [4, 6], "blocks": [6], "dropout": 0.5},
    "grey": {"channels": 1, "stem": [4], "blocks": [6]},
    "one output": {"outputs": 1, "stem": [4], "blocks": [6]},
}


def built(name: str) -> InceptionRegressor:
    torch.manual_seed(0)
    return InceptionRegressor(**(SMALL | REGRESSORS[name]))


@pytest.fixture(params=REGRESSORS)
def model(request):
    return built(request.param)


def pictures(model: InceptionRegressor, count: int = 3) -> torch.Tensor:
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    return torch.randn(
        count, first.in_channels, SMALL["height"], SMALL["width"], generator=torch.Generator().manual_seed(1)
    )


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_published_model_has_the_published_sizes():
    model = InceptionRegressor(outputs=1, head="flatten", **PUBLISHED)
    assert model.linear.in_features == 301_056 and parameters(model.linear) == 301_057
    assert parameters(model) - parameters(model.linear) == 195_712
    assert parameters(model) == 496_769
    block = model.blocks[0]
    assert [tuple(m.weight.shape) for m in block.modules() if isinstance(m, nn.Conv2d)] == [
        (96, 3, 1, 1), (64, 3, 1, 1), (96, 64, 3, 3), (64, 3, 1, 1), (96, 64, 3, 3), (96, 96, 3, 3), (96, 3, 1, 1),
    ]  # fmt: skip
    seen = []
    model.blocks.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    assert model.eval()(torch.zeros(1, 3, 224, 224)).shape == (1, 1)
    assert seen == [(1, 384, 224, 224)]


@pytest.mark.parametrize(
    ("options", "head", "total"),
    [
        ({"outputs": 1, "head": "gap", **PUBLISHED}, 385, 196_097),
        ({"outputs": 3, "head": "gap", **PUBLISHED}, 3 * 385, 195_712 + 3 * 385),
        ({"outputs": 1, "head": "gap", "grid": 4, **PUBLISHED}, 16 * 384 + 1, 195_712 + 16 * 384 + 1),
    ],
    ids=["gap", "gap, three outputs", "gap, grid of 4"],
)
def test_each_variant_has_the_parameters_it_says(options, head, total):
    model = InceptionRegressor(**options)
    assert (parameters(model.linear), parameters(model)) == (head, total)


def test_gives_one_row_of_outputs_a_picture(model):
    outputs = model.linear.out_features
    assert model(pictures(model)).shape == (3, outputs)
    assert model(pictures(model, 1)).shape == (1, outputs)
    assert model.eval()(pictures(model, 1)).shape == (1, outputs)


def test_every_parameter_gets_a_finite_gradient(model):
    F.mse_loss(model(pictures(model, 8)), torch.randn(8, model.linear.out_features)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_channels_last_changes_no_number(model):
    model = model.eval().double()
    other = copy.deepcopy(model).to(memory_format=torch.channels_last)
    images = pictures(model).double()
    torch.testing.assert_close(other(images.contiguous(memory_format=torch.channels_last)), model(images))


@pytest.mark.parametrize("name", REGRESSORS)
def test_weights_fit_a_second_model_of_the_same_options(name):
    model, other = built(name).eval(), built(name).eval()
    with torch.no_grad():
        for value in other.state_dict().values():
            value.zero_()
    other.load_state_dict(model.state_dict(), strict=True)
    torch.testing.assert_close(other(pictures(model)), model(pictures(model)))


def test_a_picture_alone_is_predicted_as_among_others(model):
    model.eval()
    images = pictures(model)
    torch.testing.assert_close(torch.cat([model(image[None]) for image in images]), model(images), atol=1e-5, rtol=1e-5)


def test_first_predictions_are_near_the_mean_and_differ(model):
    predictions = model.eval()(pictures(model, 16))
    assert predictions.abs().max() < 1
    assert predictions.std(0).min() > 0


@pytest.mark.parametrize(("channels", "pools_last"), [(3, False), (40, True)])
def test_block_equals_its_plain_form(channels, pools_last):
    """As in the paper: the pool before its convolution, whatever the number of channels."""
    torch.manual_seed(0)
    block = InceptionBlock(channels, [6, 3, 5, 4, 7, 8]).double()
    assert block.pooled.pools_last is pools_last
    images = torch.randn(2, channels, 9, 7, dtype=torch.float64, requires_grad=True)

    def plain(unit: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = F.conv2d(x, unit.conv.weight, padding=unit.conv.kernel_size[0] // 2)
        mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
        scale, shift = (p.view(1, -1, 1, 1) for p in (unit.norm.weight, unit.norm.bias))
        return ((x - mean) / (variance + 1e-3).sqrt() * scale + shift).clamp(min=0)

    wide, twice = images, images
    for unit in block.wide:
        wide = plain(unit, wide)
    for unit in block.twice:
        twice = plain(unit, twice)
    pooled = plain(block.pooled, F.avg_pool2d(images, 3, stride=1, padding=1))
    expected = torch.cat((plain(block.single, images), wide, twice, pooled), dim=1)
    leaves = (images, *block.parameters())
    weights = torch.randn_like(expected)
    wanted = torch.autograd.grad((expected * weights).sum(), leaves)
    found = block(images)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad((found * weights).sum(), leaves), wanted)


def test_a_small_map_has_fewer_fields():
    model = InceptionRegressor(outputs=1, channels=3, height=8, width=12, stem=[4, 4], blocks=[4], grid=4)
    assert model.linear.in_features == 16 * 2 * 2
    assert model(torch.zeros(2, 3, 8, 12)).shape == (2, 1)


@pytest.mark.parametrize(("rows", "columns", "grid"), [(8, 12, 4), (8, 8, 1), (14, 9, 4), (5, 7, 5), (3, 4, 2)])
def test_fields_cover_the_whole_map(rows, columns, grid):
    fields = average_fields(rows, columns, grid)
    image = torch.rand(1, 1, rows, columns, requires_grad=True)
    found = fields(image)
    assert found.shape == (1, 1, grid, grid)
    found.sum().backward()
    assert (image.grad > 0).all()
    if rows % grid == 0 and columns % grid == 0:
        torch.testing.assert_close(found, F.adaptive_avg_pool2d(image, grid))


def test_only_a_head_with_fields_tells_where_something_is():
    """A dot in each of two places: the means over the whole map agree, those over fields do not."""
    images = torch.zeros(2, 3, 64, 64)
    images[0, :, 20, 20] = images[1, :, 44, 44] = 9.0

    def difference(grid: int) -> float:
        torch.manual_seed(0)
        model = InceptionRegressor(outputs=1, channels=3, height=64, width=64, stem=[8], blocks=[6], grid=grid)
        first, second = model.eval()(images)
        return float((first - second).abs().detach())

    assert difference(1) < 1e-6 < 1e-4 < difference(4)


def test_the_last_layer_stays_in_float32_under_autocast(model):
    model.eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(pictures(model))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, model(pictures(model)), atol=0.02, rtol=0.05)


@pytest.mark.parametrize("name", ["published", "stack, conv"])
def test_compiles_without_a_break_in_the_graph(name):
    model = built(name)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(pictures(model)), built(name)(pictures(model)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compiled(pictures(model)).dtype == torch.float32


def test_widths_of_a_block_follow_from_one_number():
    assert block_widths(96, "blocks[0]") == [96, 64, 96, 64, 96, 96]
    assert InceptionBlock(3, block_widths(96, "blocks[0]")).out == 4 * 96
    assert InceptionBlock(3, [3, 2, 5, 4, 6, 1]).out == 3 + 5 + 6 + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": 0}, "outputs = 0"),
        ({"stem": [4, 0]}, r"stem\[1\] = 0"),
        ({"blocks": []}, "blocks is empty"),
        ({"blocks": [1]}, r"blocks\[0\] = 1"),
        ({"blocks": [4, [1, 2, 3]]}, r"blocks\[1\] = \[1, 2, 3\].*six"),
        ({"blocks": [[1, 2, 3, 0, 5, 6]]}, r"blocks\[0\]\[3\] = 0"),
        ({"downsample": "mean"}, "downsample = 'mean'.*max, conv, none"),
        ({"head": "mean"}, "head = 'mean'.*gap, flatten"),
        ({"grid": 0}, "grid = 0"),
        ({"pool": 2.5}, "pool = 2.5"),
        ({"dropout": 1.0}, "dropout = 1.0"),
        ({"head": "flatten", "pool": 33}, "32×40 pixels shrink to 32×40.*33×33"),
        ({"height": 8, "width": 8, "stem": [4, 4, 4]}, "8×8 pixels shrink to 1×1.*two places"),
        ({"height": 1, "width": 1}, "1×1 pixels shrink to 1×1"),
    ],
)
def test_options_out_of_range_are_refused_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        InceptionRegressor(**(SMALL | options))


@pytest.mark.parametrize(("height", "width", "halvings"), [(33, 47, 3), (17, 9, 2), (64, 2, 1)])
def test_odd_sides_fit_and_one_picture_alone_can_be_trained_on(height, width, halvings):
    model = InceptionRegressor(outputs=1, channels=3, height=height, width=width, stem=[4] * halvings, blocks=[4])
    model(torch.randn(1, 3, height, width)).sum().backward()
