// tests/cuda/driver_test.cpp: what is said when the CUDA driver is absent, too old or incomplete.
#include "backend/cuda/driver.h"

#include <gtest/gtest.h>

#include "tests/cuda/fake_driver.h"

namespace tilewright::cuda {
namespace {

using testing::Test;

class Driver : public Test {
 protected:
  void SetUp() override { fake_driver().reset(); }
};

TEST_F(Driver, AbsentLibraryNamesWhatWasLookedForAndWhatToDo) {
  const Result<DriverApi> api = open_driver({"libno-such-driver.so.1", "libnor-this.so"});
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.status().code(), StatusCode::unavailable);
  for (const char* part :
       {"libno-such-driver.so.1", "libnor-this.so", "install an NVIDIA driver", "'cpu'"}) {
    EXPECT_NE(api.status().message().find(part), std::string::npos) << api.status().message();
  }
}

TEST_F(Driver, LibraryWithoutTheResolverIsCalledTooOld) {
  const Result<DriverApi> api = open_driver({"libm.so.6"});
  ASSERT_FALSE(api.ok());
  EXPECT_NE(api.status().message().find("older than CUDA 12.0"), std::string::npos)
      << api.status().message();
}

TEST_F(Driver, EveryEntryPointIsFilledIn) {
  const Result<DriverApi> api = resolve_driver(&resolve_fake);
  ASSERT_TRUE(api.ok()) << api.status().message();
  const auto* slots = reinterpret_cast<void* const*>(&*api);
  for (std::size_t slot = 0; slot < sizeof(DriverApi) / sizeof(void*); ++slot) {
    EXPECT_NE(slots[slot], nullptr) << "entry point " << slot << " of DriverApi is never resolved";
  }
}

TEST_F(Driver, MissingEntryPointIsNamed) {
  missing_symbol = "cuTensorMapEncodeTiled";
  const Result<DriverApi> api = resolve_driver(&resolve_fake);
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.status().code(), StatusCode::unavailable);
  EXPECT_NE(api.status().message().find("'cuTensorMapEncodeTiled'"), std::string::npos)
      << api.status().message();
}

TEST_F(Driver, OldDriverIsRefusedWithBothVersions) {
  fake_driver().version = 11080;
  const Status status = initialise_driver(fake_driver_api());
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_NE(status.message().find("11.8"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("12.0"), std::string::npos) << status.message();
  fake_driver().version = kInterfaceVersion;
  EXPECT_TRUE(initialise_driver(fake_driver_api()).ok());
}

TEST_F(Driver, FailedStartIsUnavailableWhateverTheError) {
  fake_driver().init_result = static_cast<DriverResult>(999);
  EXPECT_EQ(initialise_driver(fake_driver_api()).code(), StatusCode::unavailable);
}

TEST_F(Driver, ErrorsSayWhatWasDoneAndWhatTheDriverCalledIt) {
  const Status status = check(fake_driver_api(), DriverResult::out_of_memory, "allocating 5 bytes");
  EXPECT_EQ(status.code(), StatusCode::out_of_memory);
  for (const char* part :
       {"allocating 5 bytes", "CUDA_ERROR_OUT_OF_MEMORY", "(2)", "as the test asked"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_TRUE(check(fake_driver_api(), DriverResult::success, "nothing").ok());
}

}  // namespace
}  // namespace tilewright::cuda
